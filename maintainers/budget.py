"""Print the lines and modules of each part of the packages, and the words of the documentation: `make budget`.

The numbers are a report, no limit.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
_APPROVAL = 'tool_approval/tool_approval'
PARTS: dict[str, tuple[str, ...]] = {
    'loop': ('pydantic_ai_slim/pydantic_ai_deferred',),
    'core and display': tuple(f'{_APPROVAL}/{folder}' for folder in ('core', 'display', 'audit', 'storage')),
    'adapters': (f'{_APPROVAL}/integrations', f'{_APPROVAL}/compat'),
    'tools, OS sandbox and settings': tuple(f'{_APPROVAL}/{folder}' for folder in ('tools', 'os_sandbox', 'settings')),
    'durable runs and ledger': (f'{_APPROVAL}/durable',),
    'user interfaces and inbox': (f'{_APPROVAL}/ui', f'{_APPROVAL}/inbox'),
    'command line and assistant': (f'{_APPROVAL}/cli', f'{_APPROVAL}/assistant'),
    'together': ('pydantic_ai_slim', 'tool_approval'),
}
"""The folders of each part; the last has the exports and `testing` too."""
PAGE = 1_500
"""Words of a page that answers one question. Tables and what programs write may need more."""


def report(root: Path) -> list[str]:
    """Return the table, a line for each part."""
    table = [f'{"part":32} {"modules":>8} {"lines":>8}']
    for part, folders in PARTS.items():
        modules = [path for folder in folders for path in (root / folder).rglob('*.py')]
        lines = sum(len(path.read_text(encoding='utf-8').splitlines()) for path in modules)
        table.append(f'{part:32} {len(modules):8} {lines:8,}')
    pages = [path.read_text(encoding='utf-8') for path in (root / 'docs').rglob('*.md')]
    words = [len(page.split()) for page in pages]
    longer = sum(count > PAGE for count in words)
    return [*table, '', f'documentation: {len(words)} pages, {sum(words):,} words, {longer} longer than {PAGE:,} words']


if __name__ == '__main__':
    print('\n'.join(report(ROOT)))

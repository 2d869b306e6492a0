"""Print how many lines and modules each part of the packages has, and fail above the budget: `make budget`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Part:
    """A part of the packages; `lines` is its budget, in lines of `*.py`."""

    name: str
    lines: int
    folders: tuple[str, ...]


_APPROVAL = 'tool_approval/tool_approval'
PARTS = (
    Part('loop', 2_628, ('pydantic_ai_slim/pydantic_ai_deferred',)),
    Part(
        'core and display',
        7_997,
        tuple(f'{_APPROVAL}/{folder}' for folder in ('core', 'display', 'audit', 'storage')),
    ),
    Part('adapters', 4_413, (f'{_APPROVAL}/integrations', f'{_APPROVAL}/compat')),
    Part(
        'tools, OS sandbox and settings',
        12_452,
        tuple(f'{_APPROVAL}/{folder}' for folder in ('tools', 'os_sandbox', 'settings')),
    ),
    Part('durable runs and ledger', 1_914, (f'{_APPROVAL}/durable',)),
    Part('user interfaces and inbox', 8_949, (f'{_APPROVAL}/ui', f'{_APPROVAL}/inbox')),
    Part('command line and assistant', 4_887, (f'{_APPROVAL}/cli', f'{_APPROVAL}/assistant')),
)
LINES = 44_030
"""All parts, with the exports and `testing`."""
MODULES = 241


def count(root: Path, folders: tuple[str, ...]) -> tuple[int, int]:
    """The lines and the modules in these folders and below."""
    modules = [path for folder in folders for path in (root / folder).rglob('*.py')]
    return sum(len(path.read_text(encoding='utf-8').splitlines()) for path in modules), len(modules)


def report(root: Path) -> tuple[list[str], list[str]]:
    """The table, and a line for each budget that is exceeded."""
    table = [f'{"part":32} {"modules":>8} {"lines":>8} {"at most":>8}']
    exceeded: list[str] = []
    for part in PARTS:
        lines, modules = count(root, part.folders)
        table.append(f'{part.name:32} {modules:8} {lines:8,} {part.lines:8,}')
        if lines > part.lines:
            exceeded.append(f'{part.name}: {lines - part.lines} lines too many')
    lines, modules = count(root, ('pydantic_ai_slim', 'tool_approval'))
    table.append(f'{"together":32} {modules:8} {lines:8,} {LINES:8,}')
    if lines > LINES:
        exceeded.append(f'together: {lines - LINES} lines too many')
    if modules > MODULES:
        exceeded.append(f'together: {modules - MODULES} modules too many')
    return table, exceeded


def main() -> int:
    """Print the table."""
    table, exceeded = report(ROOT)
    print('\n'.join([*table, *exceeded]))
    return 1 if exceeded else 0


if __name__ == '__main__':
    sys.exit(main())

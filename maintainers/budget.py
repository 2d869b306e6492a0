"""Print the lines and modules of each part of the packages, what one approved call passes through, and the words of
the documentation: `make budget`.

The numbers are a report, no limit.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.testing import approve_all

ROOT = Path(__file__).parents[1]
_APPROVAL = 'tool_approval/tool_approval'
PARTS: dict[str, tuple[str, ...]] = {
    'loop': ('pydantic_ai_slim/pydantic_ai_deferred',),
    'core and display': tuple(f'{_APPROVAL}/{folder}' for folder in ('core', 'display', 'audit', 'storage')),
    'adapters': (f'{_APPROVAL}/integrations', f'{_APPROVAL}/compat'),
    'tools, OS sandbox and settings': tuple(f'{_APPROVAL}/{folder}' for folder in ('tools', 'os_sandbox', 'settings')),
    'durable runs with their adapter': (f'{_APPROVAL}/durable', f'{_APPROVAL}/integrations/pydantic_ai/durable'),
    'user interfaces and inbox': (f'{_APPROVAL}/ui', f'{_APPROVAL}/inbox'),
    'command line and assistant': (f'{_APPROVAL}/cli', f'{_APPROVAL}/assistant'),
    'together': ('pydantic_ai_slim', 'tool_approval'),
}
"""The folders of each part. Durable agents are in two parts; the last has the exports and `testing` too."""
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
    return [
        *table,
        '',
        f'documentation: {len(words)} pages, {sum(words):,} words, {longer} longer than {PAGE:,} words',
    ]


def approved_call() -> str:
    """Return what a run with one approved call passes through. Comprehensions are not counted as functions."""
    agent = Agent(TestModel(), capabilities=[Approvals(ui=approve_all())])

    @agent.tool_plain
    def refund(amount: float) -> str:  # pyright: ignore[reportUnusedFunction] - the agent calls it
        return f'refunded {amount}'

    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == 'call' and any(
            f'/{name}/' in code.co_filename for name in ('tool_approval', 'pydantic_ai_deferred')
        ):
            calls[code.co_filename, code.co_qualname] += 1

    agent.run_sync('Refund it.')
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        agent.run_sync('Refund it.')
    finally:
        sys.setprofile(before)
    functions = [each for each in calls if not each[1].endswith('comp>') and not each[1].endswith('<genexpr>')]
    named = {name: sum(n for (_, each), n in calls.items() if each.endswith(name)) for name in _COUNTED}
    return (
        f'one approved call: {len(functions)} functions in {len({path for path, _ in functions})} modules, '
        f'{named["canonical_json"]} canonical encodings, {named["Policy.judge"]} judgements'
    )


_COUNTED = ('canonical_json', 'Policy.judge')


if __name__ == '__main__':
    print('\n'.join([*report(ROOT), approved_call()]))

"""Stories that use a temporary folder. They show diffs before changes, agents as tools, and several calls at once."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai_deferred import Agent

from tool_approval.integrations.pydantic_ai import ApprovalToolset, FileToolset

from .scene import Scene, Step, denied, scripted


@contextmanager
def _folder(root: str, files: Mapping[str, str], *, asks_to_read: bool = False) -> Generator[tuple[Path, FileToolset]]:
    """Yield a temporary folder with `files`, and file tools that need approval. Messages name the folder `root`."""
    with tempfile.TemporaryDirectory(prefix='tool-approval-demo-') as temporary:
        folder = Path(temporary).resolve()
        for name, content in files.items():
            (folder / name).write_text(content)
        settings = {'root': str(folder), 'mode': 'rw', 'read_approval': asks_to_read}
        yield folder, FileToolset({'paths': {root: settings}}, folder)


_GREETING = '''"""Greets people."""


def greet(name):
    return 'Hello ' + name


def main():
    print(greet('world'))
'''

_TEST = """from greeting import greet


def test_it_greets_by_name():
    assert greet('Ada') == 'Hello, Ada!'
"""

_OLD_LINE, _NEW_LINE = "    return 'Hello ' + name\n", "    return f'Hello, {name}!'\n"


def _edit(results: list[ToolReturnPart]) -> Step:
    steps = [
        ToolCallPart('read_file', {'path': 'greeting.py'}),
        ToolCallPart('edit_file', {'path': 'greeting.py', 'old_text': _OLD_LINE, 'new_text': _NEW_LINE}),
        ToolCallPart('write_file', {'path': 'test_greeting.py', 'content': _TEST}),
        ToolCallPart('delete', {'path': 'notes.txt'}),
    ]
    if len(results) < len(steps):
        return [steps[len(results)]]
    names = ('read', 'fixed the greeting', 'wrote a test', 'deleted the scratch file')
    done = [name for name, result in zip(names, results, strict=False) if not denied(result)][1:]
    return f'I {", ".join(done)}.' if done else 'Nothing was changed, as you wished.'


def _edited(folder: Path) -> list[str]:
    is_mended = _NEW_LINE in (folder / 'greeting.py').read_text()
    return [
        f'greeting.py {"was changed" if is_mended else "is unchanged"}',
        f'test_greeting.py {"is there" if (folder / "test_greeting.py").exists() else "was not written"}',
        f'notes.txt {"is still there" if (folder / "notes.txt").exists() else "is gone"}',
    ]


@contextmanager
def open_edit() -> Generator[Scene]:
    """Let an agent edit a small program. The user sees a diff before each change."""
    with _folder('project', {'greeting.py': _GREETING, 'notes.txt': 'A scratch file.\n'}) as (folder, tools):
        yield Scene(
            opening='A folder has a small Python program, and a scratch file.',
            prompt='The greeting lacks its comma. Fix that, add a test, and remove what is not needed.',
            agent_name='editor',
            instructions='You edit the files in the working directory: greeting.py and notes.txt. Read before you '
            'edit. If a step is refused, leave it and go on with the next. End with one sentence.',
            tools=tools,
            plan=_edit,
            facts=lambda: _edited(folder),
        )


def _research(results: list[ToolReturnPart]) -> Step:
    if not results:
        return [ToolCallPart('read_file', {'path': 'figures.csv'})]
    return 'I was not allowed to read the figures.' if denied(results[0]) else 'Visits rose from 120 to 180.'


def _manage(results: list[ToolReturnPart]) -> Step:
    if not results:
        return [ToolCallPart('ask_researcher', {'question': 'How did the visits change?'})]
    if len(results) == 1:
        if 'not allowed' in str(results[0].content):
            return 'There is no report: the researcher was not allowed to read the figures.'
        report = '# Figures\n\nVisits rose from 120 to 180.\n'
        return [ToolCallPart('write_file', {'path': 'report.md', 'content': report})]
    return 'The report was refused.' if denied(results[1]) else 'The report is in report.md.'


def _add_researcher(manager: Agent[Any, str], files: ApprovalToolset) -> None:
    researcher: Agent[Any, str] = Agent(
        name='researcher',
        instructions='Read figures.csv and say in one sentence how the visits changed.',
        toolsets=[files],
    )

    @manager.tool
    async def ask_researcher(ctx: RunContext[Any], question: str) -> str:
        """Ask the researcher, who can read the figures."""
        model = scripted(_research) if ctx.model.model_name == 'script' else cast('Model', ctx.model)
        return (await researcher.run(question, model=model)).output


@contextmanager
def open_nested() -> Generator[Scene]:
    """Use an agent as a tool of another agent. The question names the agent that calls the tool."""
    with _folder('desk', {'figures.csv': 'month,visits\nMay,120\nJune,180\n'}, asks_to_read=True) as (folder, tools):
        yield Scene(
            opening='A manager agent can ask a researcher agent. The calls of both agents need your approval.',
            prompt='Write a report about the visits.',
            agent_name='manager',
            instructions='Ask the researcher about the figures, then write the answer to report.md. If something is '
            'refused, say so and end.',
            tools=tools,
            add_tools=_add_researcher,
            plan=_manage,
            facts=lambda: [f'report.md {"is there" if (folder / "report.md").exists() else "was not written"}'],
        )


_LOGS = ('may.log', 'june.log', 'july.log', 'orders.csv')


def _tidy(results: list[ToolReturnPart]) -> Step:
    if not results:
        return [ToolCallPart('delete', {'path': name}) for name in _LOGS]
    gone = [name for name, result in zip(_LOGS, results, strict=False) if not denied(result)]
    return f'Deleted: {", ".join(gone)}.' if gone else 'I deleted nothing.'


def _left(folder: Path) -> list[str]:
    left = sorted(path.name for path in folder.iterdir())
    return [f'left in the folder: {", ".join(left) or "nothing"}']


@contextmanager
def open_batch() -> Generator[Scene]:
    """Make several calls in one response. The screen shows all calls before the first one runs."""
    with _folder('archive', {name: f'{name}: a line that no one needs\n' * 3 for name in _LOGS}) as (folder, tools):
        yield Scene(
            opening='A folder has three old logs, and orders.csv, which the agent mistakes for a log.',
            prompt='Delete the old logs.',
            agent_name='janitor',
            instructions='Delete the old logs in the working directory. Make all calls in one response. End with one '
            'sentence that says what was deleted.',
            tools=tools,
            plan=_tidy,
            facts=lambda: _left(folder),
        )

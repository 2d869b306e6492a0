"""Stories in a temporary folder: diffs before files change, an agent inside a tool, several calls at once."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai_deferred import Agent

from tool_approval.integrations.pydantic_ai import ApprovalToolset, FileToolset

from .scene import MakeController, Scene, Step, Story, denied, scripted

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


@contextmanager
def open_edit(make_controller: MakeController) -> Generator[Scene]:
    """Make a small project in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix='tool-approval-demo-') as folder:
        project = Path(folder).resolve()
        (project / 'greeting.py').write_text(_GREETING)
        (project / 'notes.txt').write_text('A scratch file.\n')
        # Reading is free here; every change is asked about, with its diff.
        files = FileToolset({'paths': {'project': {'root': str(project), 'mode': 'rw'}}}, project)
        controller = make_controller(files.presenters)

        def plan(results: list[ToolReturnPart]) -> Step:
            steps: list[list[ToolCallPart]] = [
                [ToolCallPart('read_file', {'path': 'greeting.py'})],
                [
                    ToolCallPart(
                        'edit_file',
                        {
                            'path': 'greeting.py',
                            'old_text': "    return 'Hello ' + name\n",
                            'new_text': "    return f'Hello, {name}!'\n",
                        },
                    )
                ],
                [ToolCallPart('write_file', {'path': 'test_greeting.py', 'content': _TEST})],
                [ToolCallPart('delete', {'path': 'notes.txt'})],
            ]
            if len(results) < len(steps):
                return steps[len(results)]
            names = ('read', 'mended the greeting', 'wrote a test', 'deleted the scratch file')
            done = [name for name, result in zip(names, results, strict=False) if not denied(result)][1:]
            return f'I {", ".join(done)}.' if done else 'Nothing was changed, as you wished.'

        def facts() -> list[str]:
            is_mended = "f'Hello, {name}!'" in (project / 'greeting.py').read_text()
            return [
                f'greeting.py {"was changed" if is_mended else "is as it was"}',
                f'test_greeting.py {"is there" if (project / "test_greeting.py").exists() else "was not written"}',
                f'notes.txt {"is still there" if (project / "notes.txt").exists() else "is gone"}',
            ]

        yield Scene(
            opening='A folder has a small Python program, and a scratch file.',
            prompt='The greeting lacks its comma. Mend it, add a test, and remove what is not needed.',
            agent=Agent(
                name='editor',
                instructions='You edit the files in the working directory: greeting.py and notes.txt. Read before you '
                'edit. If a step is refused, leave it and go on with the next. End with one sentence.',
                toolsets=[ApprovalToolset(files, controller)],
            ),
            controller=controller,
            script=scripted(plan),
            facts=facts,
        )


EDIT = Story(title='Diffs before anything changes', open_scene=open_edit)


_REPORT = '# Figures\n\nVisits rose from 120 to 180.\n'


@contextmanager
def open_nested(make_controller: MakeController) -> Generator[Scene]:
    """Make a folder that both agents work in, each with tools of its own."""
    with tempfile.TemporaryDirectory(prefix='tool-approval-demo-') as folder:
        desk = Path(folder).resolve()
        (desk / 'figures.csv').write_text('month,visits\nMay,120\nJune,180\n')
        sandbox = {'paths': {'desk': {'root': str(desk), 'mode': 'rw', 'read_approval': True}}}
        files = FileToolset(sandbox, desk)
        controller = make_controller(files.presenters)

        def research(results: list[ToolReturnPart]) -> Step:
            if not results:
                return [ToolCallPart('read_file', {'path': 'figures.csv'})]
            if denied(results[0]):
                return 'I was not allowed to read the figures.'
            return 'Visits rose from 120 to 180.'

        researcher: Agent[object, str] = Agent(
            name='researcher',
            instructions='Read figures.csv and say in one sentence how the visits developed.',
            toolsets=[ApprovalToolset(FileToolset(sandbox, desk), controller)],
        )

        def plan(results: list[ToolReturnPart]) -> Step:
            if not results:
                return [ToolCallPart('ask_researcher', {'question': 'How did the visits develop?'})]
            if len(results) == 1:
                if 'not allowed' in str(results[0].content):
                    return 'There is no report: the researcher was not allowed to read the figures.'
                return [ToolCallPart('write_file', {'path': 'report.md', 'content': _REPORT})]
            return 'The report was refused.' if denied(results[1]) else 'The report is in report.md.'

        manager: Agent[object, str] = Agent(
            name='manager',
            instructions='Ask the researcher about the figures, then write report.md with what it says. If something '
            'is refused, say so and end.',
            toolsets=[ApprovalToolset(files, controller)],
        )

        @manager.tool
        async def ask_researcher(ctx: RunContext[object], question: str) -> str:
            """Ask the researcher, who can read the figures."""
            model = scripted(research) if ctx.model.model_name == 'script' else cast('Model', ctx.model)
            result = await researcher.run(question, model=model)
            return result.output

        def facts() -> list[str]:
            return [f'report.md {"is there" if (desk / "report.md").exists() else "was not written"}']

        yield Scene(
            opening='A manager has a researcher at hand. Both need consent, and both ask you.',
            prompt='Write a report about the visits.',
            agent=manager,
            controller=controller,
            script=scripted(plan),
            facts=facts,
        )


NESTED = Story(title='An agent inside a tool', open_scene=open_nested)


_LOGS = ('may.log', 'june.log', 'july.log')
_KEPT = 'orders.csv'


@contextmanager
def open_batch(make_controller: MakeController) -> Generator[Scene]:
    """Make a folder with old logs, and one file that must not go with them."""
    with tempfile.TemporaryDirectory(prefix='tool-approval-demo-') as folder:
        archive = Path(folder).resolve()
        for name in (*_LOGS, _KEPT):
            (archive / name).write_text(f'{name}: a line that nobody needs\n' * 3)

        files = FileToolset({'paths': {'archive': {'root': str(archive), 'mode': 'rw'}}}, archive)
        controller = make_controller(files.presenters)

        def plan(results: list[ToolReturnPart]) -> Step:
            if not results:
                return [ToolCallPart('delete', {'path': name}) for name in (*_LOGS, _KEPT)]
            gone = [name for name, result in zip((*_LOGS, _KEPT), results, strict=False) if not denied(result)]
            return f'Deleted: {", ".join(gone)}.' if gone else 'I deleted nothing.'

        def facts() -> list[str]:
            left = sorted(path.name for path in archive.iterdir())
            return [f'left in the folder: {", ".join(left) or "nothing"}']

        yield Scene(
            opening=f'A folder has three old logs, and {_KEPT}, which the agent takes for one more.',
            prompt='Delete the old logs.',
            agent=Agent(
                name='janitor',
                instructions='Delete the old logs in the working directory: all calls in one response. End with one '
                'sentence that says what was deleted.',
                toolsets=[ApprovalToolset(files, controller)],
            ),
            controller=controller,
            script=scripted(plan),
            facts=facts,
        )


BATCH = Story(title='Several calls at once', open_scene=open_batch)

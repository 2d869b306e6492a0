"""An agent that changes files: what will be different is shown before it is."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai_deferred import Agent

from tool_approval.integrations.pydantic_ai import ApprovalToolset, FileToolset

from .scene import MakeController, Scene, Story
from .scripts import Step, denied, scripted

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
def open_scene(make_controller: MakeController) -> Generator[Scene]:
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


STORY = Story(title='Diffs before anything changes', open_scene=open_scene)

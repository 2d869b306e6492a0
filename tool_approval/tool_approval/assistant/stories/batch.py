"""Several calls in one response: all of them are shown before the first one runs."""

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

_LOGS = ('may.log', 'june.log', 'july.log')
_KEPT = 'orders.csv'


@contextmanager
def open_scene(make_controller: MakeController) -> Generator[Scene]:
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


STORY = Story(title='Several calls at once', open_scene=open_scene)

"""An agent whose tool is another agent. What that one wants to do reaches the same person, who sees who asks."""

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

from .scene import MakeController, Scene, Story
from .scripts import Step, denied, scripted

_REPORT = '# Figures\n\nVisits rose from 120 to 180.\n'


@contextmanager
def open_scene(make_controller: MakeController) -> Generator[Scene]:
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


STORY = Story(title='An agent inside a tool', open_scene=open_scene)

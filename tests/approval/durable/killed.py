"""A worker that kills itself at a fault point, once."""

import asyncio
import os
import signal
from pathlib import Path

from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_deferred import Agent
from tool_approval.durable import DurableStore
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.durable import DurableAgent

from tests.loop.scripted import call
from tool_approval import ApprovalController

POINTS = (
    'model 1 before',
    'triage before',
    'triage after',
    'park before',
    'park after',
    'resume 0 after',
    'resume 1 before',
    'resume 1 after',
    'decide before',
    'decide after',
    'add before',
    'reserved before',
    'reserved after',
    'executing before',
    'executing after',
    'tool before',
    'tool after',
    'done before',
    'done after',
    'model 2 before',
    'finish before',
    'finish after',
)
"""Between any two effects of a run with one approved call."""


class Killer:
    """Kills this process at one point, unless one was killed there before."""

    def __init__(self, folder: Path, point: str) -> None:
        self.folder = folder
        self.point = point

    def __call__(self, point: str) -> None:
        if point == self.point:
            try:
                (self.folder / 'killed').touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner, name, point_of):
        """Have a method pass through the points before and after it."""
        method = getattr(owner, name)

        def call(*args, **keywords):
            point = point_of(*args, **keywords)
            self(f'{point} before')
            result = method(*args, **keywords)
            self(f'{point} after')
            return result

        async def call_async(*args, **keywords):
            point = point_of(*args, **keywords)
            self(f'{point} before')
            result = await method(*args, **keywords)
            self(f'{point} after')
            return result

        setattr(owner, name, call_async if asyncio.iscoroutinefunction(method) else call)


def make(url: str, folder: Path, point: str) -> DurableAgent:
    """The agent, which pays once; what it really paid is in the file `paid`."""
    kill = Killer(folder, point)

    def respond(messages, info):
        number = 1 + sum(isinstance(message, ModelResponse) for message in messages)
        kill(f'model {number} before')
        return ModelResponse(parts=[call('pay', '1', amount=10)] if number == 1 else [TextPart('done')])

    agent = Agent(FunctionModel(respond), name='killed', capabilities=[DBOSDurability(), Approvals()])

    @agent.tool_plain
    def pay(amount: int) -> str:
        kill('tool before')
        with (folder / 'paid').open('a') as paid:
            paid.write(f'{amount}\n')
        kill('tool after')
        return f'paid {amount}'

    return DurableAgent(agent, store=url)


def work(url: str, folder: Path, point: str, lease: float) -> None:
    """Be a worker until the end of the process."""
    # Only here: the process ends with what is changed.
    kill = Killer(folder, point)
    kill.around(ApprovalController, 'triage', lambda self, requests: 'triage')
    kill.around(ApprovalController, 'decide', lambda self, requests, rereads: 'decide')
    kill.around(DurableStore, 'park', lambda *args, **keywords: 'park')
    kill.around(DurableStore, 'resume', lambda self, run_id, segment, **keywords: f'resume {segment}')
    kill.around(DurableStore, 'add_execution', lambda self, row: 'add')
    kill.around(DurableStore, 'move', lambda self, row, to, **keywords: to)
    kill.around(DurableStore, 'finish', lambda *args, **keywords: 'finish')

    async def serve() -> None:
        async with make(url, folder, point).worker(polling=0.05, lease=lease):
            await asyncio.Event().wait()

    asyncio.run(serve())

"""A worker that kills itself at a fault point, once."""

import asyncio
import os
import signal
from pathlib import Path

from pydantic_ai import RunContext
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

NESTED_POINTS = (
    'boss park before',
    'boss park after',
    'clerk resume 0 after',
    'clerk park before',
    'clerk park after',
    'clerk resume 1 after',
    'clerk executing before',
    'clerk executing after',
    'clerk tool before',
    'clerk tool after',
    'clerk done before',
    'clerk done after',
    'clerk finish before',
    'clerk finish after',
    'boss resume 1 before',
    'boss resume 1 after',
    'boss model 2 before',
    'boss finish before',
)
"""The same for a run, of the boss, that starts two nested runs at once, of the clerk, with one approved call each."""


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


def make_nested(url: str, folder: Path, point: str) -> DurableAgent:
    """A boss, who calls a clerk twice at once, who pays; the runs that really paid are in the file `paid`."""
    kill = Killer(folder, point)

    def model(name, *calls):
        def respond(messages, info):
            number = 1 + sum(isinstance(message, ModelResponse) for message in messages)
            kill(f'{name} model {number} before')
            return ModelResponse(parts=list(calls) if number == 1 else [TextPart('done')])

        return FunctionModel(respond)

    def capabilities():
        return [DBOSDurability(), Approvals()]

    clerk = Agent(model('clerk', call('pay', '1', amount=10)), name='clerk', capabilities=capabilities())

    @clerk.tool
    def pay(ctx: RunContext[None], amount: int) -> str:
        kill('clerk tool before')
        with (folder / 'paid').open('a') as paid:
            paid.write(f'{ctx.conversation_id}\n')
        kill('clerk tool after')
        return f'paid {amount}'

    boss = Agent(
        model('boss', *(call('ask', each, prompt='pay') for each in ('1', '2'))),
        name='boss',
        toolsets=[DurableAgent(clerk, store=url).as_tool('ask')],
        capabilities=capabilities(),
    )
    return DurableAgent(boss, store=url)


def who(run_id: str) -> str:
    """Whose run it is."""
    return 'boss' if run_id == 'run' else 'clerk'


def work_nested(url: str, folder: Path, point: str, lease: float) -> None:
    """Be a worker of the boss until the end of the process."""
    kill = Killer(folder, point)
    kill.around(DurableStore, 'park', lambda self, run_id, *args, **keywords: f'{who(run_id)} park')
    kill.around(DurableStore, 'resume', lambda self, run_id, segment, **keywords: f'{who(run_id)} resume {segment}')
    kill.around(DurableStore, 'move', lambda self, row, to, **keywords: f'{who(row.run_id)} {to}')
    kill.around(DurableStore, 'finish', lambda self, run_id, *args, **keywords: f'{who(run_id)} finish')
    serve(make_nested(url, folder, point), lease)


def serve(durable: DurableAgent, lease: float) -> None:
    """Execute runs until the end of the process."""

    async def run() -> None:
        async with durable.worker(polling=0.05, lease=lease):
            await asyncio.Event().wait()

    asyncio.run(run())


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

    serve(make(url, folder, point), lease)

"""A workflow whose module has the sandbox import our packages anew: nothing is passed through."""

from temporalio import workflow

from tests.loop.temporal.agents import agent


@workflow.defn
class WithNothingPassed:
    @workflow.run
    async def run(self) -> str:
        return (await agent.run('go')).output

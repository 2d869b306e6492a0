"""Workflows that run an agent. The SDK's sandbox imports this module anew for each of them."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tests.loop.temporal.agents import agent, asked, blocking


@workflow.defn
class WithConstructor:
    @workflow.run
    async def run(self) -> str:
        return (await agent.run('go')).output


@workflow.defn
class WithRunKeyword:
    @workflow.run
    async def run(self) -> str:
        async def in_the_workflow(ctx, requests):
            asked.append('run keyword')
            return requests.build_results(approve_all=True)

        return (await agent.run('go', deferred_tool_handler=in_the_workflow)).output


@workflow.defn
class WithPlainFunction:
    @workflow.run
    async def run(self) -> str:
        return (await blocking.run('go')).output

import threading

from pydantic_ai import ToolDenied


def test_async_handler_runs_on_one_loop_and_its_denials_reach_every_depth(load):
    example = load('nested_agents')
    threads = []

    async def deny(ctx, requests):
        threads.append(threading.current_thread())
        denied = ToolDenied('No.')
        return requests.build_results(approvals={call.tool_call_id: denied for call in requests.approvals})

    result = example.manager.run_sync('Do it.', deferred_tool_handler=deny)

    assert result.output == 'No. No. No. No.'
    assert threads == [threading.current_thread()] * 4

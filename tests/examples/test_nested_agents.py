import threading

from pydantic_ai import ToolDenied


def test_requests_of_every_depth_reach_the_outer_handler_with_their_lineage(play):
    assert play('nested_agents') == [
        'yes manager.research > researcher.read_web',
        'yes manager.research > researcher.summarize > writer.save_summary',
        'no  manager.announce > postman.send_mail',
        'yes manager.archive',
        'The web was read. A summary was saved. No mail was sent. It was archived.',
    ]


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

import asyncio
import http.client
import json
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit

import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


class Browser:
    """Talks to the page whose address the program printed, or to something that only looks like it."""

    def __init__(self, url):
        self.parts = urlsplit(url)

    def ask(self, method, path, *, query=None, form=None, headers=None):
        connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=60)
        try:
            body = urlencode(form) if form is not None else None
            url = f'{path}?{self.parts.query if query is None else query}'
            connection.request(method, url, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read().decode()
        finally:
            connection.close()

    def open_requests(self):
        return json.loads(self.ask('GET', '/requests')[2])

    def wait_for_requests(self):
        # The program prints its address before the agent runs. Each round is a request, so this ends.
        while not (requests := self.open_requests()):
            pass
        return requests


@pytest.fixture
def review(start):
    with start('web_review', '--port', '0') as program:
        yield program, Browser(program.stdout.readline().rpartition(' ')[2].strip())


def answer(request, decision):
    return {'run_id': request['run_id'], 'tool_call_id': request['tool_call_id'], 'decision': decision}


def test_reviewer_approves_one_request_and_denies_the_other(review):
    program, browser = review

    first, second = browser.wait_for_requests()
    assert [request['args'] for request in (first, second)] == [
        {'name': 'cache'},
        {'name': '<script>alert("approve me")</script>'},
    ]
    assert first['tool'] == 'drop_table'
    denied = browser.ask('POST', '/answer', form=answer(second, 'deny'))
    again = browser.ask('POST', '/answer', form=answer(second, 'approve'))
    assert browser.open_requests() == [first]
    approved = browser.ask('POST', '/answer', form=answer(first, 'approve'))
    output, errors = program.communicate()

    assert (denied[0], again[0], approved[0]) == (200, 409, 200)
    assert (output, errors) == ('- cache is dropped.\n- A reviewer said no.\n', '')
    assert program.returncode == 0


def test_strangers_and_bad_requests_are_refused_and_settle_nothing(review):
    _, browser = review
    before = browser.wait_for_requests()
    yes = answer(before[0], 'approve')
    address = browser.parts.netloc

    _, headers, page = browser.ask('GET', '/')
    others = {'Host': 'evil.example'}, {'Origin': 'http://evil.example'}, {'Origin': 'null'}
    another_host, another_site, no_origin = ({'form': yes, 'headers': headers} for headers in others)
    refused = [
        (401, 'no token', 'POST', '/answer', {'query': '', 'form': yes}),
        (401, 'wrong token', 'POST', '/answer', {'query': 'token=%C3%A9', 'form': yes}),
        (401, 'no token for the page', 'GET', '/', {'query': ''}),
        (401, 'no token for the list', 'GET', '/requests', {'query': ''}),
        (421, 'name of another host', 'POST', '/answer', another_host),
        (403, 'page of another site', 'POST', '/answer', another_site),
        (403, 'page without origin', 'POST', '/answer', no_origin),
        (405, 'answer by link', 'GET', '/answer', {}),
        (400, 'no decision', 'POST', '/answer', {'form': {**yes, 'decision': 'maybe'}}),
        (400, 'two decisions', 'POST', '/answer', {'form': [*yes.items(), ('decision', 'deny')]}),
        (400, 'no form', 'POST', '/answer', {'form': {}}),
        (409, 'another run', 'POST', '/answer', {'form': {**yes, 'run_id': 'other'}}),
        (409, 'unknown call', 'POST', '/answer', {'form': {**yes, 'tool_call_id': 'other'}}),
    ]
    bad = {why: browser.ask(method, path, **given) for _, why, method, path, given in refused}

    assert {why: status for why, (status, _, _) in bad.items()} == {why: status for status, why, *_ in refused}
    assert not any('drop_table' in body for _, _, body in bad.values())
    assert browser.open_requests() == before
    assert browser.ask('POST', '/answer', form=yes, headers={'Origin': f'http://{address}'})[0] == 200
    assert '<script' not in page
    assert '&lt;script&gt;alert(\\&quot;approve me\\&quot;)&lt;/script&gt;' in page
    assert headers['content-security-policy'].startswith("default-src 'none'")
    assert headers['cache-control'] == 'no-store'


def deploy_twice(messages, info):
    """Uses the same call id in every run, as some models do."""
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return ModelResponse(parts=[TextPart(str(returns[0].content))])
    return ModelResponse(parts=[ToolCallPart('drop_table', {'name': 'cache'}, tool_call_id='call_1')])


def test_same_call_id_in_two_runs_is_two_requests(load, finish):
    example = load('web_review')

    async def scenario():
        inbox = example.Inbox()
        model = FunctionModel(deploy_twice)
        runs = [
            asyncio.create_task(example.agent.run('go', model=model, deferred_tool_handler=inbox)) for _ in range(2)
        ]
        while len(inbox.open) < 2:
            await asyncio.sleep(0)
        keys = list(inbox.open)
        answers = [inbox.answer(keys[1], approved=True), inbox.answer(keys[0], approved=False)]
        return keys, answers, sorted([(await run).output for run in runs])

    keys, answers, outputs = finish(scenario())

    assert [tool_call_id for _, tool_call_id in keys] == ['call_1', 'call_1']
    assert answers == [True, True]
    assert outputs == ['A reviewer said no.', 'cache is dropped.']


def test_cancelled_run_leaves_nothing_to_answer(load, finish):
    example = load('web_review')

    async def scenario():
        inbox = example.Inbox()
        run = asyncio.create_task(example.agent.run('go', deferred_tool_handler=inbox))
        while not inbox.open:
            await asyncio.sleep(0)
        keys = list(inbox.open)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return [inbox.answer(key, approved=True) for key in keys], inbox.open

    answers, still_open = finish(scenario())

    assert answers == [False, False]
    assert still_open == {}


def test_answer_between_cancellation_and_its_end_is_too_late(load, finish):
    example = load('web_review')
    requests = DeferredToolRequests(approvals=[ToolCallPart('drop_table', tool_call_id='call_1')])

    async def scenario():
        inbox = example.Inbox()
        asking = asyncio.create_task(inbox(SimpleNamespace(run_id='run_1'), requests))
        while not inbox.open:
            await asyncio.sleep(0)
        asking.cancel()
        is_taken = inbox.answer(('run_1', 'call_1'), approved=True)
        with pytest.raises(asyncio.CancelledError):
            await asking
        return is_taken

    assert not finish(scenario())

import asyncio
import json
from itertools import pairwise

import pytest

FAILED = 'The editor gave no valid answer.'


class Peer:
    """The editor's end of the pipes."""

    def __init__(self, process):
        self.process = process

    def receive(self):
        header = self.process.stdout.readline()
        assert header.startswith(b'Content-Length: '), header
        assert self.process.stdout.readline() == b'\r\n'
        return json.loads(self.process.stdout.read(int(header.split()[1])))

    def send(self, message):
        self.send_bytes(frame(json.dumps({'jsonrpc': '2.0', **message}).encode()))

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()


def frame(body):
    return b'Content-Length: %d\r\n\r\n' % len(body) + body


@pytest.fixture
def editor(start):
    with start('editor_rpc', text=False) as process:
        yield Peer(process)


def test_editor_approves_one_call_and_refuses_the_other_in_any_order(editor):
    asked = [editor.receive(), editor.receive()]
    editor.send({'method': 'editor/focus', 'params': {}})
    editor.send({'id': asked[0]['id'], 'method': 'workspace/list'})
    refused = editor.receive()
    editor.send({'id': asked[1]['id'], 'result': {'approved': False, 'message': 'Not that file.'}})
    editor.send({'id': asked[0]['id'], 'result': {'approved': True}})
    finished = editor.receive()
    rest, errors = editor.process.communicate()

    assert [message['method'] for message in asked] == ['approval/ask', 'approval/ask']
    assert [message['params']['args'] for message in asked] == [{'path': 'a.py'}, {'path': 'b.py'}]
    assert [message['params']['tool'] for message in asked] == ['edit', 'edit']
    assert refused == {'jsonrpc': '2.0', 'id': '1', 'error': {'code': -32601, 'message': 'Method not found'}}
    assert finished == {
        'jsonrpc': '2.0',
        'method': 'run/finished',
        'params': {'output': 'edited a.py; Not that file.'},
    }
    assert (rest, errors) == (b'', b'')
    assert editor.process.returncode == 0


def test_editor_that_goes_away_denies_what_it_left_open(editor):
    asked = [editor.receive(), editor.receive()]

    editor.send({'id': asked[0]['id'], 'result': {'approved': True}})
    editor.process.stdin.close()
    finished = editor.receive()
    editor.process.stdin = None  # `communicate` would flush it
    editor.process.communicate()

    assert finished['params'] == {'output': f'edited a.py; {FAILED}'}
    assert editor.process.returncode == 0


def reply(**fields):
    return json.dumps({'jsonrpc': '2.0', 'id': '1', **fields}).encode()


async def answer(example, data, *, ends=False):
    """Run the agent, and let the editor send `data` when both questions wait.

    Gives the run's output, and whether the program still listens.
    """
    sent = []
    reader = asyncio.StreamReader()
    editor = example.Editor(reader, sent.append)
    listening = asyncio.create_task(editor.listen())
    run = asyncio.create_task(example.agent.run('Fix both.', deps=editor))
    while len(sent) < 2:
        await asyncio.sleep(0)
    reader.feed_data(data)
    if ends:
        reader.feed_eof()
    output, is_listening = (await run).output, not listening.done()
    listening.cancel()
    return output, is_listening


NOT_ASKED = 'The editor could not ask.'


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        pytest.param({'result': {'approved': False, 'message': 'Not now.'}}, 'Not now.', id='refusal'),
        pytest.param({'result': {'approved': False}}, FAILED, id='refusal-without-a-message'),
        pytest.param({'result': {'approved': 1}}, FAILED, id='one-is-not-true'),
        pytest.param({'result': {'approved': 'true'}}, FAILED, id='text-is-not-true'),
        pytest.param({'result': True}, FAILED, id='no-mapping'),
        pytest.param({'result': None}, FAILED, id='null'),
        pytest.param({}, FAILED, id='neither-result-nor-error'),
        pytest.param({'result': {'approved': True}, 'error': {'code': 1}}, NOT_ASKED, id='result-and-error'),
        pytest.param({'error': {'code': 1, 'message': 'no'}}, NOT_ASKED, id='error'),
    ],
)
def test_reply_without_a_clear_yes_denies_its_own_question_alone(load, finish, fields, message):
    data = frame(reply(**fields)) + frame(reply(id='2', result={'approved': True}))

    assert finish(answer(load('editor_rpc'), data)) == (f'{message}; edited b.py', True)


@pytest.mark.parametrize(
    'data',
    [
        pytest.param(frame(b'{"jsonrpc": "2.0", "id": "1", "result": {"approved": tr'), id='cut-off-json'),
        pytest.param(frame(b'[' * 100_000), id='json-too-deep'),
        pytest.param(frame(b'\xff\xfe'), id='no-text'),
        pytest.param(frame(b'"approved"'), id='no-object'),
        pytest.param(frame(b'{"id": "1", "result": {"approved": true}}'), id='no-version'),
        pytest.param(frame(reply(id=1, result={'approved': True})), id='number-is-not-the-id'),
        pytest.param(frame(reply(id=['1'], result={'approved': True})), id='list-is-not-the-id'),
        pytest.param(frame(reply(id='3', result={'approved': True})), id='id-that-was-not-asked'),
        pytest.param(frame(reply(id=None, result={'approved': True})), id='no-id'),
    ],
)
def test_ambiguous_message_denies_every_open_question(load, finish, data):
    assert finish(answer(load('editor_rpc'), data)) == (f'{FAILED}; {FAILED}', True)


@pytest.mark.parametrize(
    ('data', 'ends'),
    [
        pytest.param(b'Content-Length: -5\r\n\r\n{}', False, id='negative-length'),
        pytest.param(b'Content-Length: many\r\n\r\n{}', False, id='length-is-no-number'),
        pytest.param(b'Content-Length: 1000001\r\n\r\n{}', False, id='length-too-large'),
        pytest.param(b'Content-Type: json\r\n\r\n{}', False, id='no-length'),
        pytest.param(b'\xff: 1\r\n\r\n{}', False, id='header-is-no-ascii'),
        pytest.param(b'x' * 70_000, False, id='header-without-end'),
        pytest.param(b'Content-Length: 50\r\n\r\n{"js', True, id='end-in-the-body'),
        pytest.param(b'Content-Le', True, id='end-in-the-header'),
        pytest.param(b'', True, id='end-at-once'),
    ],
)
def test_broken_framing_or_the_end_of_the_input_denies_every_open_question_and_ends_listening(load, finish, data, ends):
    assert finish(answer(load('editor_rpc'), data, ends=ends)) == (f'{FAILED}; {FAILED}', False)


def test_nothing_is_read_after_broken_framing(load, finish):
    example = load('editor_rpc')
    sent = []

    async def scenario():
        reader = asyncio.StreamReader()
        editor = example.Editor(reader, sent.append)
        reader.feed_data(b'approve all of it\r\n\r\n')
        for number in ('1', '2'):
            reader.feed_data(frame(reply(id=number, result={'approved': True})))
        await editor.listen()
        return (await example.agent.run('Fix both.', deps=editor)).output

    assert finish(scenario()) == f'{FAILED}; {FAILED}'
    assert sent == []


def test_frames_arrive_in_any_pieces(load, finish):
    example = load('editor_rpc')
    data = frame(reply(result={'approved': True})) + frame(reply(id='2', result={'approved': False, 'message': 'No.'}))
    cuts = [0, 3, 17, 19, 20, 40, 41, 60, len(data)]
    sent = []

    async def scenario():
        reader = asyncio.StreamReader()
        editor = example.Editor(reader, sent.append)
        listening = asyncio.create_task(editor.listen())
        run = asyncio.create_task(example.agent.run('Fix both.', deps=editor))
        while len(sent) < 2:
            await asyncio.sleep(0)
        for begin, end in pairwise(cuts):
            reader.feed_data(data[begin:end])
            await asyncio.sleep(0)
        result = await run
        listening.cancel()
        return result.output

    assert finish(scenario()) == 'edited a.py; No.'


def test_cancelled_run_leaves_the_editor_usable(load, finish):
    example = load('editor_rpc')
    sent = []

    async def scenario():
        reader = asyncio.StreamReader()
        editor = example.Editor(reader, sent.append)
        listening = asyncio.create_task(editor.listen())
        run = asyncio.create_task(example.agent.run('Fix both.', deps=editor))
        while len(sent) < 2:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        again = asyncio.create_task(example.agent.run('Fix both.', deps=editor))
        while len(sent) < 4:
            await asyncio.sleep(0)
        # Late replies to the first run's questions, then the second run's.
        for number in ('1', '2', '3', '4'):
            reader.feed_data(frame(reply(id=number, result={'approved': True})))
        result = await again
        listening.cancel()
        return result.output

    assert finish(scenario()) == 'edited a.py; edited b.py'

import pytest

from .slack_server import press_of, signed

pytestmark = pytest.mark.anyio


def target(entry):
    return f'{entry.id}.{entry.digest}.0'


def with_headers(wrong):
    """The signed request, with other values for some of its headers."""

    def send(scene, payload):
        body, headers = signed(payload)
        return scene.request(body, {**headers, **wrong})

    return send


def with_header_twice(name):
    def send(scene, payload):
        body, headers = signed(payload)
        raw = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
        return scene.request(body, [*raw, *(each for each in raw if each[0] == name.lower().encode())])

    return send


def changed_after_signing(scene, payload):
    body, headers = signed(payload)
    return scene.request(body.replace(b'U0ADA', b'U0BOB'), headers)


def too_long_to_be_read(scene, payload):
    body, headers = signed(payload)
    chunk = {'type': 'http.request', 'body': b'x' * 600_000, 'more_body': True}
    return scene.request(body, headers, chunks=[chunk, chunk])


def without_an_end(scene, payload):
    body, headers = signed(payload)
    chunks = [{'type': 'http.request', 'body': body, 'more_body': True}, {'type': 'http.disconnect'}]
    return scene.request(body, headers, chunks=chunks)


REFUSED = {
    'another secret': (401, lambda scene, payload: scene.request(*signed(payload, secret='a guess'))),
    'signed 400 s ago': (401, lambda scene, payload: scene.request(*signed(payload, age_s=400))),
    'signed 100000 s ago': (401, lambda scene, payload: scene.request(*signed(payload, age_s=100_000))),
    'signed 400 s from now': (401, lambda scene, payload: scene.request(*signed(payload, age_s=-400))),
    'body changed after signing': (401, changed_after_signing),
    'no signature': (401, with_headers({'X-Slack-Signature': ''})),
    'signature of other letters': (401, with_headers({'X-Slack-Signature': 'v0=' + 'é' * 64})),
    'signature of another version': (401, with_headers({'X-Slack-Signature': 'v1=' + '0' * 64})),
    'time in words': (401, with_headers({'X-Slack-Request-Timestamp': 'soon'})),
    'time before 1970': (401, with_headers({'X-Slack-Request-Timestamp': '-1'})),
    'time in Arabic digits': (401, with_headers({'X-Slack-Request-Timestamp': '٣'})),
    'two signatures': (401, with_header_twice('X-Slack-Signature')),
    'two times': (401, with_header_twice('X-Slack-Request-Timestamp')),
    'body of more than a megabyte': (413, too_long_to_be_read),
    'body without an end': (413, without_an_end),
    'body that is not UTF-8': (400, lambda scene, payload: scene.request(b'\xff\xfe', signed(payload)[1])),
    'GET': (405, lambda scene, payload: scene.request(*signed(payload), method='GET')),
}


@pytest.mark.parametrize(('status', 'send'), REFUSED.values(), ids=REFUSED)
async def test_request_that_slack_never_sends_is_refused_and_decides_nothing(scene, status, send):
    entry = await scene.post()

    assert (await send(scene, press_of('approve', target(entry))))[0] == status
    assert (await scene.inbox.get(entry.id)).state == 'pending'
    assert scene.slack.whispers == []


async def test_a_replayed_request_is_refused(scene):
    entry = await scene.post()
    request = signed(press_of('deny', target(entry)))
    first, second = await scene.request(*request), await scene.request(*request)

    assert (first[0], second[0]) == (200, 401)
    await scene.became(entry, 'denied')
    assert scene.slack.whispers == []


async def test_a_body_in_pieces_counts_as_one(scene):
    entry = await scene.post()
    body, headers = signed(press_of('deny', target(entry)))
    chunks = [
        {'type': 'http.request', 'body': body[:100], 'more_body': True},
        {'type': 'http.request', 'body': body[100:]},
    ]

    assert (await scene.request(body, headers, chunks=chunks))[0] == 200
    await scene.became(entry, 'denied')


async def test_lifespan_is_acknowledged_and_other_protocols_are_refused(scene):
    sent, told = [], [{'type': 'lifespan.startup'}, {'type': 'lifespan.shutdown'}]

    async def receive():
        return told.pop(0)

    async def send(message):
        sent.append(message['type'])

    await scene.bot.http({'type': 'lifespan'}, receive, send)
    assert sent == ['lifespan.startup.complete', 'lifespan.shutdown.complete']
    with pytest.raises(RuntimeError, match='websocket'):
        await scene.bot.http({'type': 'websocket'}, receive, send)

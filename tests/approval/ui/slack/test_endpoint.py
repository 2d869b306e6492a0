import pytest

from .slack_server import press_of, signed


def target(entry):
    return f'{entry.id}.{entry.digest}.0'


def refused(play, send, status):
    """Whatever is sent, nothing is decided."""

    async def scenario(scene):
        entry = await scene.post()

        assert (await send(scene, press_of('approve', target(entry))))[0] == status
        assert (await scene.inbox.get(entry.id)).state == 'pending'
        assert scene.slack.whispers == []

    play(scenario)


def test_a_request_signed_with_another_secret_is_refused(play):
    refused(play, lambda scene, payload: scene.request(*signed(payload, secret='a guess')), 401)


@pytest.mark.parametrize('age_s', [400, 100_000, -400])
def test_a_stale_request_is_refused_although_its_signature_is_right(play, age_s):
    refused(play, lambda scene, payload: scene.request(*signed(payload, age_s=age_s)), 401)


def test_a_body_that_was_changed_is_refused(play):
    def send(scene, payload):
        body, headers = signed(payload)
        return scene.request(body.replace(b'U0ADA', b'U0BOB'), headers)

    refused(play, send, 401)


def test_a_replayed_request_is_refused(play):
    async def scenario(scene):
        entry = await scene.post()
        request = signed(press_of('deny', target(entry)))
        first, second = await scene.request(*request), await scene.request(*request)

        assert (first[0], second[0]) == (200, 401)
        await scene.became(entry, 'denied')
        assert scene.slack.whispers == []

    play(scenario)


@pytest.mark.parametrize(
    'wrong',
    [
        {'X-Slack-Signature': ''},
        {'X-Slack-Signature': 'v0=' + 'é' * 64},
        {'X-Slack-Signature': 'v1=' + '0' * 64},
        {'X-Slack-Request-Timestamp': 'soon'},
        {'X-Slack-Request-Timestamp': '-1'},
        {'X-Slack-Request-Timestamp': '٣'},
    ],
)
def test_headers_that_slack_never_sends_are_refused(play, wrong):
    def send(scene, payload):
        body, headers = signed(payload)
        return scene.request(body, {**headers, **wrong})

    refused(play, send, 401)


@pytest.mark.parametrize('name', ['X-Slack-Signature', 'X-Slack-Request-Timestamp'])
def test_two_headers_for_one_are_refused(play, name):
    def send(scene, payload):
        body, headers = signed(payload)
        raw = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
        return scene.request(body, [*raw, *(each for each in raw if each[0] == name.lower().encode())])

    refused(play, send, 401)


def test_a_body_that_is_too_long_is_refused_before_it_is_read_whole(play):
    def send(scene, payload):
        body, headers = signed(payload)
        chunk = {'type': 'http.request', 'body': b'x' * 600_000, 'more_body': True}
        return scene.request(body, headers, chunks=[chunk, chunk])

    refused(play, send, 413)


def test_a_body_that_does_not_end_is_refused(play):
    def send(scene, payload):
        body, headers = signed(payload)
        chunks = [{'type': 'http.request', 'body': body, 'more_body': True}, {'type': 'http.disconnect'}]
        return scene.request(body, headers, chunks=chunks)

    refused(play, send, 413)


def test_body_that_is_not_utf8_is_refused(play):
    refused(play, lambda scene, payload: scene.request(b'\xff\xfe', signed(payload)[1]), 400)


def test_only_post_is_answered(play):
    refused(play, lambda scene, payload: scene.request(*signed(payload), method='GET'), 405)


def test_a_body_in_pieces_counts_as_one(play):
    async def scenario(scene):
        entry = await scene.post()
        body, headers = signed(press_of('deny', target(entry)))
        chunks = [
            {'type': 'http.request', 'body': body[:100], 'more_body': True},
            {'type': 'http.request', 'body': body[100:]},
        ]

        assert (await scene.request(body, headers, chunks=chunks))[0] == 200
        await scene.became(entry, 'denied')

    play(scenario)


def test_the_life_of_a_server_is_acknowledged_and_other_protocols_are_not(play):
    async def scenario(scene):
        sent, told = [], [{'type': 'lifespan.startup'}, {'type': 'lifespan.shutdown'}]

        async def receive():
            return told.pop(0)

        async def send(message):
            sent.append(message['type'])

        await scene.bot.http({'type': 'lifespan'}, receive, send)
        assert sent == ['lifespan.startup.complete', 'lifespan.shutdown.complete']
        with pytest.raises(RuntimeError, match='websocket'):
            await scene.bot.http({'type': 'websocket'}, receive, send)

    play(scenario)

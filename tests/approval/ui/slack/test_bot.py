import importlib
import sys

import pytest
from tool_approval.core.errors import MissingExtraError
from tool_approval.inbox import ApproverRule

from .slack_server import APP_TOKEN, buttons_of, press_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ('wrong', 'told'),
    [
        ({'token': 'xoxp-a-user'}, "begins with 'xoxb-'"),
        ({'channel': '#approvals'}, 'is not a channel id'),
        ({'approvers': ApproverRule()}, 'must list at least one'),
        ({'approvers': ApproverRule(users={'U1', 'U2'}, count=2)}, 'only users and groups'),
        ({'signing_secret': ' '}, 'leave it out for Socket Mode'),
        ({'people': {'U1': 'ada', 'U2': 'Policy'}}, 'is the name of a rule'),
    ],
)
async def test_wrong_configuration_is_reported(scene, wrong, told):
    with pytest.raises(ValueError, match=told):
        scene.make_bot(**wrong)


async def test_an_environment_that_would_replace_the_token_is_refused(scene, monkeypatch):
    monkeypatch.setenv('SLACK_CLIENT_ID', 'x')
    monkeypatch.setenv('SLACK_CLIENT_SECRET', 'x')
    with pytest.raises(ValueError, match='unset SLACK_CLIENT_ID'):
        scene.make_bot()


async def test_http_requires_an_explicit_signing_secret(scene, monkeypatch):
    monkeypatch.setenv('SLACK_SIGNING_SECRET', 'from somewhere')
    with pytest.raises(ValueError, match='requires `signing_secret`'):
        _ = scene.make_bot(signing_secret=None).http


async def test_invalid_app_token_is_refused(scene):
    with pytest.raises(ValueError, match="begins with 'xapp-'"):
        await scene.bot.run('xoxb-test')


async def test_presses_arrive_by_socket_mode_also_after_a_new_connection(scene):
    bot = scene.make_bot(signing_secret=None)
    async with scene.following(bot, APP_TOKEN):
        first, second = await scene.post(), await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 2 and scene.slack.connections == 1)
        values = [buttons_of(message)['approve'] for message in scene.slack.messages.values()]
        await scene.slack.send('e1', press_of('approve', values[0]))
        await scene.became(first, 'approved')
        await scene.slack.disconnect()
        await scene.slack.until(lambda: scene.slack.connections == 2)
        await scene.slack.send('e2', press_of('approve', values[1]))
        await scene.became(second, 'approved')
        # An envelope that Slack sends again is no second answer.
        await scene.slack.send('e2', press_of('deny', values[1]))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1 and len(scene.slack.acknowledged) == 3)

    assert scene.slack.acknowledged == ['e1', 'e2', 'e2']
    assert 'came too late' in scene.slack.whispers[0][1]


async def test_messages_are_posted_while_socket_mode_does_not_connect(scene):
    scene.slack.fail('apps.connections.open', 'invalid_auth')
    async with scene.following(app_token=APP_TOKEN):
        await scene.post()
        await scene.slack.until(lambda: len(scene.slack.messages) == 1)

    assert scene.slack.connections == 0


@pytest.mark.parametrize('library', ['slack_bolt', 'aiohttp'])
def test_missing_library_error_names_the_extra(monkeypatch, library):
    name = 'tool_approval.ui.slack'
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, name)

    with pytest.raises(MissingExtraError, match=r'tool_approval\[slack\]'):
        importlib.import_module(name)

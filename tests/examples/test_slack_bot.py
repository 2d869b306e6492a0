import asyncio

import pytest

pytest.importorskip('slack_bolt')

from tests.approval.ui.slack.slack_server import APP_TOKEN, BOT_TOKEN, CHANNEL, SlackServer, buttons_of, press_of, shown

ENVIRONMENT = {
    'SLACK_BOT_TOKEN': BOT_TOKEN,
    'SLACK_APP_TOKEN': APP_TOKEN,
    'SLACK_CHANNEL': CHANNEL,
    'SLACK_APPROVERS': 'U0ADA, S0OPS,',
}


def test_one_backup_is_approved_and_the_other_denied(load, finish, tmp_path):
    example = load('slack_bot')

    async def scenario():
        async with SlackServer().running() as slack:
            asking = asyncio.ensure_future(example.ask_in_slack(ENVIRONMENT, tmp_path / 'i.sqlite', slack.api))
            await slack.until(lambda: len(slack.messages) == 2 and slack.connections == 1)
            by_name = {
                name: message
                for name in ('monday', 'tuesday')
                for message in slack.messages.values()
                if name in shown(message['blocks'])
            }
            await slack.send('e1', press_of('approve', buttons_of(by_name['monday'])['approve']))
            await slack.send('e2', press_of('deny', buttons_of(by_name['tuesday'])['deny']))
            return await asking

    first, second = finish(scenario()).splitlines()

    assert first == 'monday is deleted'
    assert 'tuesday' not in second


def test_mistake_in_the_settings_is_an_error(load, finish, tmp_path):
    example = load('slack_bot')
    wrong = {**ENVIRONMENT, 'SLACK_APP_TOKEN': 'xoxb-of-the-bot'}

    with pytest.raises(ValueError, match="begins with 'xapp-'"):
        finish(example.ask_in_slack(wrong, tmp_path / 'i.sqlite'))


def test_user_ids_and_group_ids_are_distinguished(load):
    rule = load('slack_bot').approvers_of('U1,, S2 ,U3')

    assert (rule.users, rule.groups) == ({'U1', 'U3'}, {'S2'})


def test_missing_settings_are_reported(run, monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('SLACK_CHANNEL', CHANNEL)

    ended = run('slack_bot')

    assert ended.returncode == 1
    assert ended.stderr == ('Set SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_APPROVERS; docs/how-to/slack.md says how.\n')

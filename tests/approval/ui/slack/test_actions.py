import asyncio
import json

import pytest
from tool_approval.core.offers import with_offers
from tool_approval.core.request import RejectedEdit
from tool_approval.inbox import Approver, ApproverRule

from tool_approval import ApprovalDecision, ApprovalPresentation, ApprovalRequest, Offer

from .slack_server import buttons_of, form_of, press_of, refused_blocks, shown, signed

pytestmark = pytest.mark.anyio


async def posted(scene, count=1):
    await scene.slack.until(lambda: len(scene.slack.messages) >= count)
    return next(reversed(scene.slack.messages.values()))


async def press(scene, name, user='U0ADA', **more):
    message = await posted(scene)
    value = buttons_of(message)[name]
    status = await scene.send(press_of(name, value, user, **more))
    assert status == 200


async def says(scene, *words):
    [message] = scene.slack.messages.values()
    await scene.slack.until(lambda: all(word in shown(message['blocks']) for word in words))
    assert not [block for block in message['blocks'] if block['type'] == 'actions']


@pytest.mark.parametrize(
    ('button', 'state', 'remember', 'told'),
    [
        ('approve', 'approved', 'none', '*Approved*; answered by `u0ada` (`U0ADA`)'),
        ('approve_session', 'approved', 'session', '*Approved* for this session'),
        ('deny', 'denied', 'none', '*Denied*'),
        ('deny_session', 'denied', 'session', '*Denied* for this session'),
    ],
)
async def test_press_settles_the_request_and_the_message_shows_how(scene, button, state, remember, told):
    async with scene.following():
        entry = await scene.post()
        await press(scene, button)

        settled = await scene.became(entry, state)
        assert settled.answer.by == Approver(id='U0ADA', name='u0ada')
        assert settled.answer.decision.remember == remember
        await says(scene, told)


async def test_a_bounded_approval_is_chosen_with_its_button(scene):
    async with scene.following():
        request = with_offers(ApprovalRequest(tool_name='refund', args={'to': 'Ada'}), [Offer(uses=10)])
        entry = await scene.post(request)
        await press(scene, 'approve_bounded_0')

        settled = await scene.became(entry, 'approved')
        assert settled.answer.decision.remember == 'session'
        assert settled.answer.decision.remember_option == request.remember_options[0].kind
        await says(scene, '*Approved* for this session')


@pytest.mark.parametrize(('written', 'told'), [(' Not now. ', 'Not now.'), (None, None), ('  ', None)])
async def test_a_denial_takes_a_note(scene, written, told):
    async with scene.following():
        entry = await scene.post()
        await press(scene, 'deny_note')
        await scene.slack.until(lambda: len(scene.slack.views) == 1)
        await scene.send(form_of(scene.slack.views[0], written))

        settled = await scene.became(entry, 'denied')
        assert settled.answer.decision.note == told
        await says(scene, *(['*Note*', told] if told else ['*Denied*']))


LONG = ApprovalRequest(
    tool_name='write', args={}, presentation=ApprovalPresentation(type='text', content='\n'.join(['x' * 90] * 2000))
)


async def test_cut_request_cannot_be_approved_for_the_session(scene):
    async with scene.following():
        entry = await scene.post(LONG)
        buttons = buttons_of(await posted(scene))
        await scene.send(press_of('approve_session', buttons['approve']))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)

        assert 'approve_session' not in buttons
        assert 'does not offer' in scene.slack.whispers[0][1]
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_whole_request_is_viewed_page_by_page(scene):
    async with scene.following():
        await scene.post(LONG)
        await press(scene, 'view_full')
        await scene.slack.until(lambda: len(scene.slack.views) == 1)
        following = buttons_of(scene.slack.views[0])['next_page']
        in_view = {'type': 'view', 'view_id': 'V1'}
        await scene.send(press_of('next_page', following, container=in_view))
        await scene.slack.until(lambda: len(scene.slack.views) == 2)

        assert 'Page 1 of' in shown(scene.slack.views[0]['blocks'])
        assert 'Page 2 of' in shown(scene.slack.views[1]['blocks'])
        assert scene.slack.calls.count('views.update') == 1


@pytest.mark.parametrize('name', ['approve', 'approve_session', 'deny', 'deny_session', 'deny_note'])
async def test_unlisted_user_gets_a_private_refusal_and_changes_nothing(scene, name):
    scene.slack.groups['S0OPS'] = ['U0CAROL']
    async with scene.following():
        entry = await scene.post()
        await press(scene, name, user='U0EVE')
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)

        [(user, text)] = scene.slack.whispers
        assert user == 'U0EVE'
        problem = 'only approvers listed for this channel may answer'
        assert text == f'You may not answer this request: {problem}. Nothing was changed.'
        assert scene.slack.views == []
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_rules_of_the_request_apply_too(scene):
    async with scene.following():
        entry = await scene.post(approvers=(ApproverRule(users=frozenset({'U0BOB'})),))
        await press(scene, 'approve', user='U0ADA')
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)
        assert (await scene.inbox.get(entry.id)).state == 'pending'
        await press(scene, 'approve', user='U0BOB')

        assert (await scene.became(entry, 'approved')).answer.by.id == 'U0BOB'


async def test_one_of_two_racing_presses_wins_and_the_other_is_refused(scene):
    scene.slack.groups['S0OPS'] = []
    async with scene.following():
        entry = await scene.post()
        message = await posted(scene)
        value, stamp = buttons_of(message)['approve'], message['ts']
        container = {'type': 'message', 'message_ts': stamp, 'channel_id': 'C0APPROVE'}
        presses = [
            press_of('approve', value, 'U0ADA', container=container),
            press_of('deny', value, 'U0BOB', container=container),
        ]
        assert await asyncio.gather(*map(scene.send, presses)) == [200, 200]
        settled = await scene.inbox.wait(entry.id, 20)
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)

        winner = settled.answer.by.id
        [(loser, text)] = scene.slack.whispers
        assert {winner, loser} == {'U0ADA', 'U0BOB'}
        assert f'came too late: the request is already {settled.state} by `{winner}`' in text
        await says(scene, f'(`{winner}`)')


async def test_a_second_press_of_an_old_message_updates_it(scene):
    async with scene.following():
        entry = await scene.post()
        message = await posted(scene)
        await scene.inbox.decide(entry.id, ApprovalDecision(approved=False), by=Approver(id='ada'), digest=entry.digest)
        await says(scene, 'answered by `ada`')
        double = {**message, 'ts': '1.000009', 'blocks': []}
        scene.slack.messages['1.000009'] = double
        target = f'{entry.id}.{entry.digest}.0'
        container = {'type': 'message', 'message_ts': '1.000009', 'channel_id': 'C0APPROVE'}
        await scene.send(press_of('approve', target, container=container))
        await scene.slack.until(lambda: double['blocks'] != [])

        assert 'answered by `ada`' in shown(double['blocks'])
        scene.slack.fail('chat.update', 'internal_error')
        await scene.send(press_of('approve', target, container=container))
        await scene.slack.until(lambda: scene.slack.faults['chat.update'] == [])


@pytest.mark.parametrize(
    ('wrong', 'told'),
    [
        (lambda entry: f'{entry.id}.{"0" * 64}.0', 'has changed since you saw it'),
        (lambda entry: f'{"x" * 43}.{entry.digest}.0', 'no longer in the inbox'),
    ],
)
async def test_answer_to_another_request_or_content_is_refused(scene, wrong, told):
    entry = await scene.post()
    await scene.send(press_of('approve', wrong(entry)))
    await scene.slack.until(lambda: len(scene.slack.whispers) == 1)

    assert told in scene.slack.whispers[0][1]
    assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_expired_request_is_reported(scene):
    async with scene.following():
        entry = await scene.post()
        value = buttons_of(await posted(scene))['approve']
        await scene.inbox.wait(entry.id, 0.001)
        await says(scene, '*Expired*', 'no approver answered in time')
        await scene.send(press_of('approve', value))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)

        assert 'the request expired at' in scene.slack.whispers[0][1]


async def test_user_without_known_groups_is_refused_with_a_message(scene, caplog):
    entry = await scene.post()
    scene.slack.fail('usergroups.users.list', 'internal_error', 'internal_error')
    value = f'{entry.id}.{entry.digest}.0'
    await scene.send(press_of('approve', value, 'U0CAROL'))
    await scene.slack.until(lambda: len(scene.slack.whispers) == 1)
    scene.slack.fail('chat.postEphemeral', 'user_not_in_channel')
    await scene.send(press_of('approve', value, 'U0CAROL'))
    await scene.slack.until(lambda: scene.slack.calls.count('chat.postEphemeral') == 2)

    assert 'Slack did not respond in time' in scene.slack.whispers[0][1]
    assert (await scene.inbox.get(entry.id)).state == 'pending'
    assert 'Slack call usergroups.users.list failed: internal_error' in caplog.text


@pytest.mark.parametrize(
    'payload',
    [
        press_of('approve', 'what is this'),
        press_of('approve', 'x', user=''),
        {**press_of('approve', 'x'), 'user': {'id': 'U0ADA', 'name': ['<secret>']}},
        {**form_of({'callback_id': 'deny_with_note', 'private_metadata': '<secret>'}, 'x')},
        {**form_of({'callback_id': 'deny_with_note'}, 'x')},
    ],
)
async def test_foreign_press_is_logged_without_its_content_and_ignored(scene, caplog, payload):
    entry = await scene.post()
    await scene.send(payload)

    assert (await scene.inbox.get(entry.id)).state == 'pending'
    assert scene.slack.whispers == []
    assert 'does not belong to an approval request' in caplog.text
    assert 'secret' not in caplog.text


async def submit(scene, view, values=None, **more):
    """Submit a form with these texts by id of the block; what Slack shows next."""
    state = {'values': {name: {'value': value} for name, value in (values or {}).items()}}
    body, headers = signed({**form_of(view, None), 'view': {'id': 'V1', 'type': 'modal', 'state': state, **view}})
    status, text = await scene.request(body, headers)
    assert status == 200
    return json.loads(text or '{}')


def text(value):
    return {'type': 'plain_text_input', 'value': value}


def option(value):
    return {'type': 'static_select', 'selected_option': {'text': {'type': 'plain_text', 'text': 'x'}, 'value': value}}


async def opened(scene, button):
    await press(scene, button)
    await scene.slack.until(lambda: len(scene.slack.views) == 1)
    return scene.slack.views.pop()


async def test_an_approver_answers_in_the_tools_place(scene):
    async with scene.following():
        entry = await scene.post(ApprovalRequest(tool_name='ask', args={'q': '?'}, answers=('respond',)))
        message = await posted(scene)
        assert set(buttons_of(message)) == {'respond', 'deny', 'deny_note'}
        form = await opened(scene, 'respond')
        await scene.send(form_of(form, ' '))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)
        await scene.send(form_of(form, ' <!channel> 42 '))

        settled = await scene.became(entry, 'denied')
        assert settled.answer.decision.response == '<!channel> 42'
        await says(scene, '*Answered* in place of the tool', '*Result*', '<!channel> 42')


SCHEMA = {
    'properties': {
        'to': {'type': 'string'},
        'amount': {'type': 'integer'},
        'memo': {'anyOf': [{'type': 'string'}, {'type': 'null'}]},
        'speed': {'enum': ['slow', 'fast']},
        'day': {'anyOf': [{'enum': ['', 7]}, {'type': 'null'}]},
    }
}
PAYMENT = ApprovalRequest(
    tool_name='pay',
    args={'to': 'bob', 'amount': 1, 'memo': None, 'speed': 'slow', 'day': None},
    args_schema=SCHEMA,
)
ENTERED = {
    'field_0': text('<eve>'),
    'field_1': text('2'),
    'field_2': text(None),
    'field_3': option('"fast"'),
    'field_4': option('null'),
}


async def test_flat_arguments_are_edited_in_a_form_and_the_changed_call_is_approved(scene):
    async with scene.following():
        entry = await scene.post(PAYMENT)
        form = await opened(scene, 'edit')
        refused = await submit(scene, form, {**ENTERED, 'field_1': text('many')})
        changed = (await submit(scene, form, ENTERED))['view']
        state_before = (await scene.inbox.get(entry.id)).state
        await submit(scene, changed)

        assert refused['response_action'] == 'errors'
        assert refused['errors'] == {'field_0': 'Not accepted: `amount` is not a whole number.'}
        assert refused_blocks(form['blocks'], 100) is None
        assert [each['element'].get('initial_value') for each in form['blocks'] if each['type'] == 'input'] == [
            'bob', '1', None, None, None
        ]  # fmt: skip
        assert 'to: "<eve>"' in shown(changed['blocks'])
        assert 'Nothing is approved yet' in shown(changed['blocks'])
        assert state_before == 'pending'
        settled = await scene.became(entry, 'approved')
        assert settled.answer.decision.override_args == {
            'to': '<eve>', 'amount': 2, 'memo': None, 'speed': 'fast', 'day': None
        }  # fmt: skip
        await says(scene, '*Approved* with changed arguments')


async def test_other_arguments_are_edited_as_json(scene):
    async with scene.following():
        entry = await scene.post(ApprovalRequest(tool_name='t', args={'paths': ['a']}))
        form = await opened(scene, 'edit')
        refused = [await submit(scene, form, {'json': text(each)}) for each in ('{', '{"paths": ["a"]}', None)]
        changed = (await submit(scene, form, {'json': text('{"paths": ["b"]}')}))['view']
        await submit(scene, changed)

        assert [each['response_action'] for each in refused] == ['errors'] * 3
        assert [list(each['errors']) for each in refused] == [['json']] * 3
        assert (await scene.became(entry, 'approved')).answer.decision.override_args == {'paths': ['b']}


async def test_a_changed_call_that_slack_cannot_show_whole_is_not_offered(scene):
    async with scene.following():
        entry = await scene.post(ApprovalRequest(tool_name='t', args={'paths': ['a']}))
        form = await opened(scene, 'edit')
        told = await submit(scene, form, {'json': text(json.dumps({'paths': ['b' * 2900]}))})

        assert told['errors'] == {
            'json': 'Not accepted: the changed call is too long to be shown in Slack; use the web page.'
        }
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_an_edit_of_a_settled_request_or_by_another_person_shows_no_changed_call(scene):
    scene.slack.groups['S0OPS'] = []
    async with scene.following():
        entry = await scene.post(PAYMENT)
        form = await opened(scene, 'edit')
        body = {**form_of(form, None, 'U0EVE')}
        body['view'] = {**body['view'], 'state': {'values': ENTERED}}
        _, told = await scene.request(*signed(body))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 1)
        await press(scene, 'deny')
        await scene.became(entry, 'denied')
        late = await submit(scene, form, ENTERED)
        await scene.slack.until(lambda: len(scene.slack.whispers) == 2)

        assert (told, late) == (b'', {})
        assert 'You may not answer this request' in scene.slack.whispers[0][1]
        assert 'too late' in scene.slack.whispers[1][1]


async def test_an_edit_that_was_not_accepted_is_shown_with_the_reason_and_edited_further(scene):
    async with scene.following():
        rejected = RejectedEdit(args={'to': 'eve'}, problem='to: unknown <!here>')
        await scene.post(
            ApprovalRequest(
                tool_name='pay',
                args={'to': 'bob'},
                args_schema={'properties': {'to': {'type': 'string'}}},
                rejected_edit=rejected,
            )
        )
        message = await posted(scene)
        form = await opened(scene, 'edit')

        assert 'was not accepted, so the call is asked about again: to: unknown <!here>' in shown(message['blocks'])
        [field] = [each for each in form['blocks'] if each['type'] == 'input']
        assert field['element']['initial_value'] == 'eve'


async def test_what_the_tool_does_not_allow_has_no_button_and_is_refused(scene):
    async with scene.following():
        entry = await scene.post(ApprovalRequest(tool_name='t', args={'a': 'x'}, answers=('edit',)))
        message = await posted(scene)
        value = buttons_of(message)['deny']
        for button in ('approve', 'deny_session'):
            await scene.send(press_of(button, value))
        await scene.slack.until(lambda: len(scene.slack.whispers) == 2)

        assert set(buttons_of(message)) == {'deny', 'deny_note', 'edit'}
        assert (await scene.inbox.get(entry.id)).state == 'pending'


async def test_long_arguments_have_no_button_to_edit_them(scene):
    async with scene.following():
        await scene.post(ApprovalRequest(tool_name='t', args={'a': 'x' * 3000}))

        assert 'edit' not in buttons_of(await posted(scene))


async def test_options_that_slack_cannot_show_are_edited_as_json(scene):
    async with scene.following():
        schema = {'properties': {'a': {'enum': ['x' * 80, 'y']}}}
        await scene.post(ApprovalRequest(tool_name='t', args={'a': 'y'}, args_schema=schema))
        form = await opened(scene, 'edit')

        assert [each['block_id'] for each in form['blocks'] if each['type'] == 'input'] == ['json']

"""A chat room on the inbox: who may answer there, what they read, and what is said when it does not count."""

import asyncio
import socket

import pytest
from tool_approval.inbox import Approver, ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore

from tool_approval import ApprovalController, ApprovalRequest

PEOPLE = {f'token-{name}': Approver(id=name) for name in ('ada', 'bob', 'eve')}
BIDI = '\u202e'


class Member:
    """One person's connection."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def read(self, end):
        """All lines up to the one that contains `end`."""
        text = ''
        while end not in text:
            line = await self.reader.readline()
            assert line, text
            text += line.decode()
        return text

    async def say(self, line, end):
        self.writer.write(f'{line}\n'.encode())
        return await self.read(end)


@pytest.fixture
def in_room(load, finish, tmp_path):
    """Play a scene with a room, a controller that asks there, and a way for people to join."""

    def play(scene):
        async def main():
            with Inbox(SQLiteStore(tmp_path / 'inbox.sqlite')) as inbox:
                rules = {'*': ApproverRule(users=frozenset({'ada', 'bob'}))}
                ui = InboxUI(inbox, approvers=rules, requester='bob', forbid_self_approval=True)
                room = load('chat_ui').Room(inbox, PEOPLE)
                following = asyncio.create_task(room.follow())
                server = await asyncio.start_server(room.join, '127.0.0.1', 0)
                members = []

                async def join(token):
                    members.append(Member(*await asyncio.open_connection(*server.sockets[0].getsockname())))
                    members[-1].writer.write(f'{token}\n'.encode())
                    return members[-1]

                try:
                    await scene(ApprovalController(ui=ui), inbox, join)
                finally:
                    for member in members:
                        member.writer.close()
                    following.cancel()
                    server.close()

        finish(main())

    return play


def mail(to):
    return ApprovalRequest(tool_name='send_mail', args={'to': to})


def ask(controller, to):
    return asyncio.create_task(controller.request_approval(mail(to)))


def test_answer_is_confirmed_and_the_others_see_who_gave_it(in_room):
    async def scene(controller, inbox, join):
        ada, eve = await join('token-ada'), await join('token-eve')
        await ada.read('Welcome, ada.')
        await eve.read('Welcome, eve.')
        waiting = ask(controller, 'carol')

        shown = await ada.read('Deny with a note')
        reply = await ada.say('deny 1 because she is away', 'counts')
        heard = await eve.read('by ada')
        decision = await waiting

        assert '#1 Approve send_mail?\n  for: bob\n  | to: "carol"\n  approve 1 - Approve\n' in shown
        assert '  approve 1 session - Approve for this session (exactly this call)\n  deny 1 - Deny\n' in shown
        assert '  deny 1 session - Deny for this session (exactly this call)\n' in shown
        assert reply.splitlines()[-1] == 'Your answer counts.'
        assert heard.endswith('#1 Denied by ada\n')
        assert (decision.approved, decision.note, decision.decided_by) == (False, 'she is away', ('ada',))

    in_room(scene)


def test_an_approval_for_the_session_answers_the_next_call_too(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        first = ask(controller, 'carol')
        await ada.read('Deny with a note')

        await ada.say('approve 1 session', 'counts')
        decisions = [await first, await ask(controller, 'carol')]

        assert [(each.approved, each.remember) for each in decisions] == [(True, 'session'), (True, 'none')]
        assert [entry.state for entry in await inbox.history()] == ['approved']

    in_room(scene)


def test_a_denial_for_the_session_answers_the_next_call_too(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        first = ask(controller, 'carol')
        await ada.read('Deny with a note')

        await ada.say('deny 1 session because she is away', 'counts')
        decisions = [await first, await ask(controller, 'carol')]

        assert [(each.approved, each.remember) for each in decisions] == [(False, 'session'), (False, 'none')]
        assert decisions[1].note.endswith('The note was: she is away')
        assert [entry.state for entry in await inbox.history()] == ['denied']

    in_room(scene)


def test_what_is_not_shown_whole_cannot_be_remembered(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        waiting = ask(controller, 'carol\n' * 500)
        shown = await ada.read('Deny with a note')

        told = await ada.say('approve 1 session', '\n')

        assert 'session' not in shown
        assert told == 'The request does not offer this answer. Nothing was changed.\n'
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    in_room(scene)


@pytest.mark.parametrize(
    ('token', 'said', 'reply'),
    [
        (
            'token-eve',
            'approve 1',
            'You may not answer this request: only listed approvers may answer. Nothing was changed.',
        ),
        (
            'token-bob',
            'approve 1',
            'You may not answer this request: requesters may not answer their own requests. Nothing was changed.',
        ),
        ('token-ada', 'approve 2', 'Write the command below a request, with its number.'),
        ('token-ada', 'Approve 1', 'Write the command below a request, with its number.'),
        ('token-ada', 'approve 1 please', 'Write the command below a request, with its number.'),
    ],
)
def test_rejected_answer_gives_the_reason_and_the_request_stays_open(in_room, token, said, reply):
    async def scene(controller, inbox, join):
        member = await join(token)
        waiting = ask(controller, 'carol')
        await member.read('Deny with a note')

        told = await member.say(said, '\n')

        assert told == f'{reply}\n'
        assert [entry.state for entry in await inbox.open()] == ['pending']
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    in_room(scene)


def test_late_answer_is_told_who_answered_first(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        waiting = ask(controller, 'carol')
        await ada.read('Deny with a note')
        await ada.say('deny 1', 'counts')

        told = await ada.say('approve 1', 'too late')

        assert 'Your answer came too late: the request is already denied by ada at ' in told
        assert not (await waiting).approved

    in_room(scene)


def test_room_shows_withdrawn_requests_and_new_members_see_open_ones(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        first, second = ask(controller, 'carol'), ask(controller, 'dan')
        await ada.read('#2')
        carol, dan = (1, 2) if 'carol' in (await inbox.open())[0].request.description else (2, 1)

        first.cancel()
        gone = await ada.read('Withdrawn')
        eve = await join('token-eve')
        seen = await eve.read('Deny with a note')

        assert f'#{carol} Withdrawn: the run no longer waits for an answer' in gone
        assert f'#{dan} Approve' in seen
        assert f'#{carol}' not in seen
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    in_room(scene)


def test_text_of_a_model_cannot_look_like_a_line_of_the_room(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        waiting = ask(controller, f'x\n#9 Approved by ada{BIDI}')

        shown = await ada.read('Deny with a note')

        assert '\n#9' not in shown
        assert BIDI not in shown
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    in_room(scene)


@pytest.mark.parametrize('sent', ['token-mallory', '', '\udcff'])
def test_a_stranger_is_not_let_in(in_room, sent):
    async def scene(controller, inbox, join):
        stranger = await join('')
        stranger.writer.write(sent.encode(errors='surrogateescape') + b'\napprove 1\n')

        assert await stranger.reader.read() == b''

    in_room(scene)


def test_a_line_that_is_too_long_ends_the_connection(in_room):
    async def scene(controller, inbox, join):
        ada = await join('token-ada')
        await ada.read('Welcome')

        ada.writer.write(b'x' * 200_000)
        try:
            rest = await ada.reader.read()
        except ConnectionResetError:  # what was not read any more resets it
            rest = b''

        assert rest == b''

    in_room(scene)


def test_the_program_is_answered_over_its_socket(start):
    with start('chat_ui') as program:
        port, *logins = program.stdout.readline().split()
        tokens = dict(each.split(':') for each in logins)
        with socket.create_connection(('127.0.0.1', int(port)), timeout=30) as connection:
            chat = connection.makefile('rw', encoding='utf-8')
            for said, end in ((tokens['ada'], 'Deny with a note'), ('approve 1 session', 'Deny with a note')):
                print(said, file=chat, flush=True)
                while end not in chat.readline():
                    pass
            print('deny 2 because not him', file=chat, flush=True)
            output, errors = program.communicate()

    assert output.splitlines() == ['Mail to carol was sent.'] * 2 + ["Denied 'send_mail': not him"]
    assert (program.returncode, errors) == (0, '')

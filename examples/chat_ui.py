"""Approve in a chat: run `python examples/chat_ui.py`, join with `nc 127.0.0.1 PORT`, and log in with a token.

The room shows the open requests of an inbox, and takes `approve 1`, `approve 1 session`, `deny 1`, `deny 1 session` and
`deny 1 because ...`. Only listed approvers may answer, not to their own requests, and the first answer wins.
"""

import asyncio
import re
import secrets
from contextlib import aclosing, suppress
from tempfile import TemporaryDirectory

from tool_approval.answering import LABELS, NotOffered, answer_options, decision_on
from tool_approval.display import display, escape_line, facts, name_of, warnings_of
from tool_approval.inbox import Approver, ApproverRule, Inbox, InboxEntry, InboxError, InboxUI, refusal_text
from tool_approval.inbox.stores import SQLiteStore

from tool_approval import ApprovalDenied, Approvals

ANSWER = re.compile(r'(approve|deny) ([0-9]{1,9})( session)?(?: because (.+))?')
COMMANDS = {
    'approve': 'approve {}',
    'session': 'approve {} session',
    'deny': 'deny {}',
    'deny_session': 'deny {} session',
    'note': 'deny {} because ...',
}


class Room:
    """A chat room for an inbox. It numbers the requests, and messages in the room answer them."""

    def __init__(self, inbox: Inbox, people: dict[str, Approver]) -> None:
        """Open a room for approvers, who log in with tokens."""
        self.inbox = inbox
        self.people = people
        self.shown: dict[int, InboxEntry] = {}
        self.members: set[asyncio.StreamWriter] = set()

    async def follow(self) -> None:
        """Show each request and its outcome, until cancelled."""
        async with aclosing(self.inbox.changes()) as changes:
            async for _ in changes:
                with suppress(InboxError):  # the store cannot be reached; its return is a change too
                    waiting = {entry.id: entry for entry in await self.inbox.open()}
                    ids = {entry.id for entry in self.shown.values() if entry.state == 'pending'} - set(waiting)
                    for entry in [*[await self.inbox.get(each) for each in ids], *waiting.values()]:
                        self.show(entry)

    def show(self, entry: InboxEntry) -> None:
        """Tell the members of the room if a request is new or its state has changed."""
        number = next((n for n, old in self.shown.items() if old.id == entry.id), len(self.shown) + 1)
        if number not in self.shown or self.shown[number].state != entry.state:
            self.shown[number] = entry
            text = question(number, entry) if entry.state == 'pending' else f'#{number} {entry.outcome}'
            for member in self.members:
                member.write(f'{text}\n'.encode())

    async def answer(self, line: str, by: Approver) -> str:
        """Handle one message, and return the reply."""
        said = ANSWER.fullmatch(line)
        entry = self.shown.get(int(said[2])) if said else None
        if said is None or entry is None:
            return 'Write the command below a request, with its number.'
        approved, remember = said[1] == 'approve', 'session' if said[3] else 'none'
        try:
            decision = decision_on(entry.request, approved=approved, note=said[4], remember=remember)
            await self.inbox.decide(entry.id, decision, by=by, digest=entry.digest)
        except (InboxError, NotOffered) as error:
            return refusal_text(error)
        return 'Your answer counts.'

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: first read a token, then answers."""
        with suppress(ConnectionError, ValueError, asyncio.CancelledError):  # it broke, or a line was too long
            by = self.people.get((await reader.readline()).decode(errors='replace').strip())
            if by is not None:
                open_ones = [question(number, each) for number, each in self.shown.items() if each.state == 'pending']
                writer.write('\n'.join([f'Welcome, {escape_line(by.id)}.', *open_ones, '']).encode())
                self.members.add(writer)
                while line := await reader.readline():
                    writer.write((await self.answer(line.decode(errors='replace').strip(), by) + '\n').encode())
        self.members.discard(writer)
        writer.close()


def question(number: int, entry: InboxEntry) -> str:
    """Return a request as text. Everything in it is escaped, and a bar precedes text that the model wrote."""
    options = answer_options(entry.request)
    lines = [f'#{number} Approve {name_of(entry.request.tool_name)}?']
    lines += [f'  {label}: {text}' for label, text in facts(entry.request)]
    lines += [f'  | {line.text}' for line in display(entry.request).lines]
    lines += [f'  Warning: {text}' for text in warnings_of(entry.request)]
    for kind in options.answers:
        # Both cover the same calls.
        covers = f' ({options.denial_covers})' if kind in ('session', 'deny_session') else ''
        if kind in COMMANDS:
            lines.append(f'  {COMMANDS[kind].format(number)} - {LABELS[kind]}{covers}')
    return '\n'.join(lines)


def send_mail(to: str) -> str:
    return f'Mail to {to} was sent.'


async def main() -> None:
    people = {secrets.token_urlsafe(16): Approver(id=name) for name in ('ada', 'bob', 'eve')}
    with TemporaryDirectory() as folder, Inbox(SQLiteStore(f'{folder}/inbox.sqlite')) as inbox:
        rules = {'*': ApproverRule(users=frozenset({'ada', 'bob'}))}
        ui = InboxUI(inbox, approvers=rules, requester='bob', forbid_self_approval=True)
        approvals = Approvals(ui=ui)
        room = Room(inbox, people)
        following = asyncio.create_task(room.follow())
        server = await asyncio.start_server(room.join, '127.0.0.1', 0)
        print(server.sockets[0].getsockname()[1], *(f'{each.id}:{token}' for token, each in people.items()), flush=True)
        for to in ('carol', 'carol', 'dan'):
            try:
                print(await approvals.execute(send_mail, {'to': to}))
            except ApprovalDenied as denied:
                print(denied)
        following.cancel()
        server.close()


if __name__ == '__main__':
    asyncio.run(main())

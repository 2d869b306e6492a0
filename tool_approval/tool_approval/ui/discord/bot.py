"""Run the Discord bot: post the requests of an inbox in a channel, and take the answers of buttons and forms."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import discord
from aiohttp import ClientError
from discord.ui import Button, Label, Modal, TextInput, View

from tool_approval.answering import LABELS, AnswerKind, NotOffered, answer_decision, bounded_options
from tool_approval.core.approvers import LONGEST_NAME
from tool_approval.core.canonical import EXACT
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import check_type
from tool_approval.core.request import ApprovalRequest
from tool_approval.display.fenced import inline_code
from tool_approval.inbox import Approver, ApproverRule, Inbox, InboxEntry, chats, errors

from .message import BOUNDED, Target, content_of, message_of, plain

T = TypeVar('T')
Press = discord.Interaction[Any]

# Attack: a request has an address that Discord blocks, and no other request is shown while the bot tries again
# (test_bot.py: test_request_that_discord_refuses_does_not_keep_others_from_being_shown).
_NEVER = frozenset({10008, 20009, 30046, 40005, 50005, 50006, 50035, 200000, 240000})
"""Discord's error codes for a permanent problem with one message. Other errors are temporary or affect the whole app.
Source: "JSON error codes" in Discord's reference."""

_FAILURES = (discord.DiscordException, ClientError, OSError, RuntimeError, ValueError, TypeError, LookupError)
"""Errors of the library for closed sessions and unexpected responses, too: it does not check what it reads."""

_FORMS = {'note': 'Note to the model', 'respond': 'Result for the model; the tool does not run'}
"""Answers with a form, and the label of its field. Source: Discord's reference: at most 45 characters."""

_NO_MENTIONS = discord.AllowedMentions.none()
_log = logging.getLogger('tool_approval')


class DiscordBot:
    """Posts the open requests of an inbox to a Discord channel, and records the approvers' answers.

    Run only one bot for a channel and inbox, because two bots would post every request twice.
    """

    def __init__(
        self,
        inbox: Inbox,
        *,
        token: str,
        channel: int,
        approvers: ApproverRule,
        people: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: chats.Sleep = asyncio.sleep,
    ) -> None:
        """Configure the bot, without sending anything yet.

        Args:
            inbox: Inbox with the requests. The bot does not close the inbox.
            token: Bot token.
            channel: Id of the channel.
            approvers: Discord's ids of users and roles (as `groups`) that may answer. The rules of
                `InboxUI(approvers=)` apply as well.
            people: Maps Discord's user ids to the approver ids used in other UIs and in `InboxUI(requester=)`. Users
                without an entry may not answer. `None` uses Discord's user ids as approver ids.
            now: Function that returns the current time.
            sleep: Function that waits for a number of seconds.

        Raises:
            TypeError: `inbox` is not an `Inbox`, `approvers` not an `ApproverRule`, or `channel` not a number.
            ValueError: `token` is empty, no approver is listed, or an id in `people` is the name of a rule.
        """
        chats.check_people(inbox, approvers, people)
        check_type('channel', channel, 'a number', int)
        if not token.strip():
            raise ValueError('`token` is empty')
        self._inbox, self._token, self._channel = inbox, token, channel
        self._approvers, self._people, self._now, self._sleep = approvers, people, now, sleep

    async def run(self) -> None:
        """Post and update messages, and receive button presses, until cancelled. Retry while Discord is unavailable.

        Raises:
            InboxError: The inbox is closed or cannot be trusted.
        """
        pause = 1.0
        while True:
            async with _Client(self._take, self._channel) as client:
                client.sync = chats.MessageSync(self._inbox, client, now=self._now, sleep=self._sleep)
                try:
                    await client.login(self._token)
                    await _first_of(client.connect(), client.sync.follow())
                except _FAILURES as error:
                    _log.error('Discord is unavailable: %s; trying again in %g seconds', _problem(error), pause)
                pause = 1.0 if client.is_ready() else pause
            await self._sleep(pause)
            pause = min(pause * 2, chats.LONGEST_PAUSE_S)

    async def _take(self, sync: chats.MessageSync, press: Press) -> None:
        """Handle a button press or a submitted form."""
        data: Mapping[str, Any] = press.data or {}
        target = Target.read(data.get('custom_id'))
        if target is None or press.channel_id != self._channel:
            return  # of another bot with the same token
        is_form = press.type is discord.InteractionType.modal_submit
        try:
            # Discord expects a response within three seconds, so the inbox is not asked before.
            if target.answer in _FORMS and not is_form:
                await _asked('send_modal', press.response.send_modal(_form(target)))
                return
            await _asked('defer', press.response.defer())
            try:
                await self._decide(target, press, data.get('components'))
            except (errors.AnswerRefused, errors.InboxUnavailable, NotOffered) as error:
                told = errors.refusal_text(error, name=inline_code, text=plain)
                await _asked('followup', press.followup.send(told, ephemeral=True))
                if isinstance(error, errors.AlreadySettled) and press.message is not None:
                    await sync.settled(await self._inbox.get(target.request_id), str(press.message.id))
        except (chats.ChatError, errors.AnswerRefused, errors.InboxUnavailable) as error:
            _log.warning('%s; the user who pressed a button may see no result', error)

    async def _decide(self, target: Target, press: Press, fields: object) -> None:
        entry = await self._inbox.get(target.request_id)
        entry.check_open(target.digest)
        roles = frozenset(str(role.id) for role in getattr(press.user, 'roles', ()))
        user = Approver(id=str(press.user.id), name=press.user.name[:LONGEST_NAME] or None, groups=roles)
        by = chats.approver_of(entry, user, approvers=self._approvers, people=self._people)
        match fields:
            case [{'component': {'value': str(text)}}]:
                pass
            case _:
                text = ''
        # In a thread: a request may have several megabytes.
        decision = await asyncio.to_thread(_decision, target.answer, entry.request, text)
        # The message is updated when the inbox reports the change.
        await self._inbox.decide(entry.id, decision, by=by, digest=target.digest)


class _Client(discord.Client):
    """A connection to Discord, and the bot's messages in one channel, as a `ChatChannel`."""

    chat = 'Discord'
    sync: chats.MessageSync

    def __init__(self, take: Callable[[chats.MessageSync, Press], Awaitable[None]], channel: int) -> None:
        # Only servers are received, with the roles of which members press buttons.
        intents = discord.Intents(guilds=True)
        super().__init__(intents=intents, max_messages=None, max_ratelimit_timeout=120, allowed_mentions=_NO_MENTIONS)
        self._take, self._channel = take, self.get_partial_messageable(channel)

    async def on_interaction(self, press: Press) -> None:
        await self._take(self.sync, press)

    async def post(self, entry: InboxEntry, others: int) -> str:
        return str((await _asked('send', self._channel.send(**await _shown(entry)))).id)

    async def update(self, message_id: str, entry: InboxEntry) -> None:
        await _asked('edit', self._channel.get_partial_message(int(message_id)).edit(**await _shown(entry)))

    async def open_messages(self, since: datetime) -> AsyncGenerator[tuple[str, str, int]]:
        seen: Counter[str] = Counter()
        # Attack: a process with a wrong clock posts a request, and Discord refuses a time before its own beginning
        # (test_bot.py: test_request_of_a_process_with_a_wrong_clock_does_not_stop_the_bot).
        found = self._channel.history(limit=None, after=max(since, discord.utils.snowflake_time(0)))
        while (message := await _asked('history', anext(found, None))) is not None:
            # Attack: another bot posts a message with the same buttons, to have it filled with requests
            # (test_bot.py: test_messages_of_others_are_not_taken_for_its_own).
            rows = message.components if message.author == self.user else []
            buttons = [getattr(each, 'custom_id', None) for row in rows for each in getattr(row, 'children', ())]
            for target in filter(None, map(Target.read, buttons[:1])):
                yield target.request_id, str(message.id), seen[target.request_id]
                seen[target.request_id] += 1


async def _asked(call: str, answer: Awaitable[T]) -> T:
    try:
        return await answer
    except _FAILURES as error:
        kind = chats.ChatRefused if getattr(error, 'code', None) in _NEVER else chats.ChatUnavailable
        raise kind('Discord', call, _problem(error)) from None


def _problem(error: Exception) -> str:
    """Describe an error without its text, which may quote an error page or an address with a secret."""
    codes = f' {error.status}, code {error.code}' if isinstance(error, discord.HTTPException) else ''
    return f'{type(error).__name__}{codes}'


async def _first_of(*running: Awaitable[None]) -> None:
    """Wait until one of them ends, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in running]
    try:
        await next(asyncio.as_completed(tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _shown(entry: InboxEntry) -> dict[str, Any]:
    """Return the arguments to send or edit a message."""
    heading, texts, buttons = await asyncio.to_thread(message_of, entry)  # as in `_decide`
    view = View(timeout=None)
    for custom_id, label in buttons.items():
        view.add_item(Button(custom_id=custom_id, label=label))
    view.stop()  # The library need not keep it: the ids say everything.
    embeds = [discord.Embed(description=text) for text in texts]
    return {'content': heading, 'embeds': embeds, 'view': view}


def _form(target: Target) -> Modal:
    form = Modal(title=LABELS[cast('AnswerKind', target.answer)], custom_id=target.custom_id)
    text = TextInput[Any](style=discord.TextStyle.paragraph, max_length=3000, required=False)
    form.add_item(Label(text=_FORMS[target.answer], component=text))
    form.stop()  # as above
    return form


def _decision(answer: str, request: ApprovalRequest, text: str) -> ApprovalDecision:
    if answer not in content_of(request)[1]:
        raise NotOffered('the message does not offer this answer')
    option = EXACT
    if answer.startswith(BOUNDED):
        answer, option = 'session', bounded_options(request)[int(answer.removeprefix(BOUNDED))][0]
    return answer_decision(request, cast('AnswerKind', answer), text=text, remember_option=option, is_whole=True)

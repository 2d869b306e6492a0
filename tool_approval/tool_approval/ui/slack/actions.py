"""Handle button presses: check that the person may answer, and answer the request."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, Field, ValidationError

from tool_approval.answering import AnswerKind, NotOffered, answer_decision, decision_on, parse_arguments
from tool_approval.core.approvers import LONGEST_NAME
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    Approver,
    ApproverRule,
    Inbox,
    InboxEntry,
    InboxUnavailable,
    refusal_text,
)
from tool_approval.inbox.chats import ChatError, ChatUnavailable, MessageSync, approver_of

from .blocks import (
    APPROVE,
    BOUNDED,
    DENY,
    DENY_SESSION,
    EDIT,
    LONGEST_NOTE,
    NOTE,
    NOTE_BLOCK,
    NOTE_FORM,
    NOTE_INPUT,
    RESPOND,
    RESPONSE_FORM,
    SESSION,
    bounded_buttons,
    full_view,
    is_body_whole,
    is_whole_in_message,
    note_form,
    response_form,
)
from .channel import SlackChannel
from .edit_views import CHANGED_FORM, EDIT_FORM, changed_view, edit_view, error_block, read_edit
from .mrkdwn import code, plain

REMEMBERED_S = 60.0
"""Seconds to cache the members of a user group. A removed member can answer until the cached list expires."""

_GROUP = re.compile(r'S[A-Z0-9]{2,40}')
"""Format of the ids of Slack's user groups."""

_ANSWERS: Mapping[str, AnswerKind] = {
    APPROVE: 'approve',
    SESSION: 'session',
    DENY: 'deny',
    DENY_SESSION: 'deny_session',
    NOTE_FORM: 'note',
    RESPONSE_FORM: 'respond',
}
"""Answers of buttons and forms, besides bounded approvals and edits."""

_NO_ANSWER = 'Slack did not respond in time. Nothing was changed; press the button again.'

_log = logging.getLogger('tool_approval')


class Press(BaseModel):
    """A button press or a submitted note, as sent by Slack."""

    actions: list[object] = Field(default=[], max_length=1)
    action: str = Field(
        validation_alias=AliasChoices(AliasPath('actions', 0, 'action_id'), AliasPath('view', 'callback_id'))
    )
    """Id of the pressed button or the submitted form."""
    target: str = Field(
        validation_alias=AliasChoices(AliasPath('actions', 0, 'value'), AliasPath('view', 'private_metadata')),
        pattern=r'^[A-Za-z0-9_-]{43}\.[0-9a-f]{64}\.[0-9]{1,6}(?:\n[ -~]{1,3000})?$',
    )
    """Request id, digest of the shown content, and page number in the full view, separated by dots. In the view of a
    changed call, a line with the edited arguments follows."""
    user_id: str = Field(validation_alias=AliasPath('user', 'id'), min_length=1, max_length=LONGEST_NAME)
    user_name: str | None = Field(
        default=None, validation_alias=AliasChoices(AliasPath('user', 'name'), AliasPath('user', 'username'))
    )
    """Name of the person in Slack. The name is untrusted, because users can change it."""
    note: str | None = Field(
        default=None,
        validation_alias=AliasPath('view', 'state', 'values', NOTE_BLOCK, NOTE_INPUT, 'value'),
        max_length=LONGEST_NOTE,
    )
    """Text of the submitted note or response."""
    values: dict[str, Any] = Field(default={}, validation_alias=AliasPath('view', 'state', 'values'))
    """State of the submitted form."""
    trigger_id: str = ''
    """Slack's trigger id. It can open a view for the person, and expires after three seconds."""
    timestamp: str | None = Field(default=None, validation_alias=AliasPath('container', 'message_ts'))
    """Timestamp of the message with the button; `None` if the button is in a view."""
    view_id: str | None = Field(default=None, validation_alias=AliasPath('container', 'view_id'))
    """Id of the view with the button; `None` if the button is in a message."""

    @property
    def request_id(self) -> str:
        """Id of the request."""
        return self.target.partition('.')[0]


def decision_of(press: Press, request: ApprovalRequest) -> ApprovalDecision:
    """Return the decision for a button press.

    Raises:
        NotOffered: The message does not offer this answer.
    """
    if press.action == CHANGED_FORM:
        edited = parse_arguments(press.target.partition('\n')[2])
        return decision_on(request, approved=True, override_args=edited)
    if press.action in BOUNDED:
        offered = bounded_buttons(request).get(press.action)
        if offered is None:
            raise NotOffered('the request does not offer this option for remembering the approval')
        is_whole = is_body_whole(request)
        return answer_decision(request, 'session', remember_option=offered[0], is_whole=is_whole)
    answer = _ANSWERS[press.action]
    is_whole = is_whole_in_message(request) if answer in ('session', 'deny_session') else None
    return answer_decision(request, answer, text=press.note, is_whole=is_whole)


class People:
    """Maps Slack's user ids to approvers, and checks whether these users may answer."""

    def __init__(
        self,
        channel: SlackChannel,
        rule: ApproverRule,
        ids: Mapping[str, str] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Accept the users and user groups in `rule`.

        Args:
            channel: Client of Slack's Web API, to look up the members of user groups.
            rule: Slack's ids of the users and user groups that may answer.
            ids: Mapping of Slack's user ids to approver ids; see `people` of `SlackBot`.
            clock: Clock that returns monotonic seconds.
        """
        self._channel = channel
        self._rule = rule
        self._ids = ids
        self._clock = clock
        self._members: dict[str, tuple[float, frozenset[str]]] = {}

    async def approver(self, user_id: str, name: str | None, entry: InboxEntry) -> Approver:
        """Check that a person may answer the request, and return the approver.

        Args:
            user_id: Slack's user id in a payload that Slack has signed.
            name: Name of the person in Slack.
            entry: The request.

        Raises:
            NotAnApprover: The person is not allowed to answer the request.
            ChatUnavailable: The members of a user group cannot be looked up.
        """
        person_id = user_id if self._ids is None else self._ids.get(user_id)
        # Groups are looked up only if the person is not listed directly.
        wanted = frozenset[str]() if user_id in self._rule.users else self._rule.groups
        listed = [rule.everyone for rule in entry.content.approvers or ()]
        wanted = wanted.union(*(rule.groups for rule in listed if person_id not in rule.users))
        groups = frozenset([group for group in sorted(wanted) if person_id and await self._has(group, user_id)])
        user = Approver(id=user_id, name=name, groups=groups)
        return approver_of(entry, user, approvers=self._rule, people=self._ids)

    async def _has(self, group: str, user_id: str) -> bool:
        if _GROUP.fullmatch(group) is None:
            return False  # not a Slack group
        known = self._members.get(group)
        if known is None or self._clock() - known[0] >= REMEMBERED_S:
            known = self._members[group] = (self._clock(), await self._channel.members(group))
        return user_id in known[1]


class ButtonActions:
    """Handles button presses. Answers of approvers are recorded, and other people get a private message."""

    def __init__(self, inbox: Inbox, channel: SlackChannel, messages: MessageSync, people: People) -> None:
        """Record answers in `inbox`; `people` determines who may answer. `messages` shows the requests in `channel`."""
        self._inbox = inbox
        self._channel = channel
        self._messages = messages
        self._people = people

    async def take(self, ack: Callable[..., Awaitable[object]], body: Mapping[str, Any]) -> None:
        """Handle a button press. Slack's library passes arguments by name.

        Args:
            ack: Acknowledges the button press; Slack expects this within three seconds.
            body: Payload sent by Slack.
        """
        try:
            press = Press.model_validate(body)
        except ValidationError:
            await ack()
            # The text of the error quotes the payload, so it is not logged.
            _log.warning('Ignored a button press that does not belong to an approval request')
            return
        # The answer to an edit says what is wrong with it, or shows the changed call.
        has_edit = press.action == EDIT_FORM
        if not has_edit:
            await ack()
        told: dict[str, Any] = {}
        try:
            if has_edit:
                told = await self._edited(press)
            else:
                await self._carry_out(press)
        except (AnswerRefused, NotOffered, InboxUnavailable) as error:
            await self._tell(press, refusal_text(error, name=code, text=plain))
            if isinstance(error, AlreadySettled):
                await self._refresh(press)
        except ChatError as error:
            _log.error('%s', error)
            await self._tell(press, _NO_ANSWER)
        if has_edit:
            await ack(**told)

    async def _checked(self, press: Press) -> tuple[InboxEntry, Approver]:
        """Return the request, which is open and was shown as it is, and the person, who may answer it."""
        request_id, digest, _ = press.target.partition('\n')[0].split('.')
        entry = await self._inbox.get(request_id)
        entry.check_open(digest)
        name = (press.user_name or '')[:LONGEST_NAME] or None
        return entry, await self._people.approver(press.user_id, name, entry)

    async def _edited(self, press: Press) -> dict[str, Any]:
        """Return what Slack shows next: the changed call, or the form with the reason why the edit is invalid."""
        entry, _ = await self._checked(press)
        try:
            edited = await asyncio.to_thread(read_edit, entry, press.values)
            view = await asyncio.to_thread(changed_view, entry, edited)
        except NotOffered as error:
            problem = f'Not accepted: {escape_line(error.problem)}.'
            return {'response_action': 'errors', 'errors': {error_block(press.values): problem}}
        return {'response_action': 'update', 'view': dict(view)}

    async def _carry_out(self, press: Press) -> None:
        entry, by = await self._checked(press)
        _, digest, page = press.target.partition('\n')[0].split('.')
        if press.action in (*_ANSWERS, *BOUNDED, CHANGED_FORM):
            # In a thread, as below: a request may have several megabytes.
            decision = await asyncio.to_thread(decision_of, press, entry.request)
            # The message is updated when the inbox reports the change.
            await self._inbox.decide(entry.id, decision, by=by, digest=digest)
        elif press.action == NOTE:
            await self._channel.show_view(note_form(entry), trigger_id=press.trigger_id)
        elif press.action == RESPOND:
            await self._channel.show_view(response_form(entry), trigger_id=press.trigger_id)
        elif press.action == EDIT:
            view = await asyncio.to_thread(edit_view, entry)
            await self._channel.show_view(view, trigger_id=press.trigger_id)
        else:
            view = await asyncio.to_thread(full_view, entry, int(page))
            await self._channel.show_view(view, trigger_id=press.trigger_id, view_id=press.view_id)

    async def _tell(self, press: Press, text: str) -> None:
        try:
            await self._channel.whisper(press.user_id, text)
        except ChatError as error:
            _log.warning('%s; the user who pressed a button could not be notified that the action failed', error)

    async def _refresh(self, press: Press) -> None:
        """Update a message that still has buttons although its request is settled."""
        try:
            await self._messages.settled(await self._inbox.get(press.request_id), press.timestamp)
        except (ChatUnavailable, AnswerRefused, InboxUnavailable) as error:
            _log.warning('%s; a message still shows a request as open', error)

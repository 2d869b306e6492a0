"""Build the Discord message of a request."""

from __future__ import annotations

import re
import string
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tool_approval.answering import LABELS, answer_options, bounded_options, place_in_response
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, facts, warnings_of
from tool_approval.display.fact_texts import are_facts_whole
from tool_approval.display.fenced import Line, cut, drawn, inline_code, sections
from tool_approval.inbox import InboxEntry

BOUNDED = 'bounded_'
"""With the number of a bounded approval from 0, the answer of its button. Other answers are those of `AnswerKind`."""

_ROOM, _ROOM_OF_OUTCOME, _MOST_EMBEDS, _LONGEST_LABEL = 2_450, 700, 2, 80
"""Maximum number of content characters in an embed, and in that of the outcome, besides fences; of embeds of content;
and of characters in a button's label. Source: Discord's reference: a message's embeds have at most 6000 characters."""

# A backslash takes the meaning from ASCII punctuation, also from that of mentions, links, emoji and lists.
_MARKUP = {char: f'\\{char}' for char in string.punctuation}

_TARGET = re.compile(r'([a-z0-9_]{1,12})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})')


@dataclass(frozen=True)
class Target:
    """The answer of a button or a form. Discord returns it as the button's id, which has at most 100 characters."""

    answer: str
    """Kind of the answer."""
    request_id: str
    """Id of the request."""
    digest: str
    """Digest of the content that was shown."""

    @property
    def custom_id(self) -> str:
        """The id of the button or the form."""
        return f'{self.answer}.{self.request_id}.{urlsafe_b64encode(bytes.fromhex(self.digest)).decode()[:43]}'

    @classmethod
    def read(cls, custom_id: object) -> Target | None:
        """Return the answer of a button or a form, or `None` if it is not one of the bot's."""
        found = _TARGET.fullmatch(custom_id) if isinstance(custom_id, str) else None
        return None if found is None else cls(found[1], found[2], urlsafe_b64decode(f'{found[3]}=').hex())


def plain(text: str) -> str:
    """Escape text so that nothing in it is markup."""
    return ''.join(_MARKUP.get(char, char) for char in text)


def message_of(entry: InboxEntry) -> tuple[str, Sequence[str], Mapping[str, str]]:
    """Return the first line of a message, which notifications show, too; the texts of its embeds; and the labels of its
    buttons, by their ids. A settled request has no buttons, and the last embed has its outcome.
    """
    place = place_in_response(entry.request)
    name = inline_code(entry.request.tool_name) + ('' if place is None else f' ({place[0]:,} of {place[1]:,})')
    texts, answers, is_whole = content_of(entry.request)
    if entry.state == 'pending':
        ends = entry.content.expires_at
        until = '' if ends is None else f'\nExpires at {ends:%H:%M:%S} UTC; the call is then denied.'
        missing = '' if is_whole else '\nThe request cannot be shown whole in Discord. Approve it in another place.'
        ids = {Target(answer, entry.id, entry.digest).custom_id: label for answer, label in answers.items()}
        return f'**Approve this call of** {name}**?**{until}{missing}', texts, ids
    when = '' if entry.settled_at is None else f' at {entry.settled_at:%H:%M:%S} UTC'
    lines: list[Line] = [(True, f'{entry.outcome}{when}')]
    for label, text in entry.written:
        lines += [(True, f'{label}:'), (False, f'| {text}')]
    told = sections(lines, room=_ROOM_OF_OUTCOME, ours=_MARKUP)
    more = f'\n{plain("[...]")}' if len(told) > 1 else ''
    return f'**Call of** {name}', [*texts, f'{told[0]}{more}'], {}


def content_of(request: ApprovalRequest) -> tuple[Sequence[str], dict[str, str], bool]:
    """Return the texts that show a request, the labels of the possible answers, and whether all of it is shown. If not,
    the request can only be denied.
    """
    # A request of several megabytes is not laid out whole, only to be cut.
    is_small = len(str(request.args)) + len(str(request.presentation)) < 50_000
    shown = display(request, whole=is_small)
    # No line may be empty: Discord would pair the fences of an empty block with later ones.
    lines: list[Line] = [(False, f'! {text}') for text in warnings_of(request)]
    for label, text in facts(request):
        lines += [(True, f'{label}:'), (False, f'| {text}')]
    lines += [(True, 'Call:'), *drawn(shown.lines)]
    texts, fits = _fit(lines)
    if not (is_small and fits and shown.is_whole and are_facts_whole(request)):
        return texts, {answer: LABELS[answer] for answer in ('deny', 'note')}, False
    options = answer_options(request, is_whole=True)
    answers: dict[str, str] = {each: LABELS[each] for each in options.answers if each not in ('always', 'edit')}
    covers: list[Line] = []
    if options.denial_covers is not None:
        covers = [(True, 'The answers for this session cover:'), (False, f'| {options.denial_covers}')]
    if 'session' in answers:
        for number, (_, label, covered) in enumerate(bounded_options(request)):
            # Attack: approvals of other calls have the same bounds, so their buttons would be alike (test_message.py).
            named = f'{label} (bounds {number})'
            answers[f'{BOUNDED}{number}'] = named if len(named) <= _LONGEST_LABEL else f'Approve within bounds {number}'
            covers += [(True, f'Approval within bounds {number} covers:'), (False, f'| {covered}')]
    remembered, fits = _fit([*lines, *covers])
    if fits:
        return remembered, answers, True
    return texts, {each: answers[each] for each in answers if each in ('approve', 'deny', 'note', 'respond')}, True


def _fit(lines: Sequence[Line]) -> tuple[list[str], bool]:
    return cut(sections(lines, room=_ROOM, ours=_MARKUP), _MOST_EMBEDS, r'\[\.\.\. {} not shown here\]')

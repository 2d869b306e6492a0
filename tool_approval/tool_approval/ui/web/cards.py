"""Render a request with its content and the forms for an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import pairwise

from tool_approval.answering import LABELS, AnswerKind, AnswerOptions, answer_options, place_in_response
from tool_approval.core.canonical import canonical_json
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import OURS, DisplayLine, LineKind, display, escape_line, facts, name_of, warnings_of
from tool_approval.inbox import Approver, InboxEntry
from tool_approval.inbox.entry import short_name

from .html import Html, element, joined
from .view import response_of, time_of, visible_changes, why_not

_SIGNS: Mapping[LineKind, str] = {'added': '+', 'removed': '−', 'cut': '⋮'}
_SPOKEN: Mapping[LineKind, str] = {'added': 'added: ', 'removed': 'removed: ', 'cut': 'left out: '}
"""Text for screen readers in place of colours and signs."""


_ROOM = 200_000
"""Maximum number of characters on one page of a whole request. Only a page with a single line may be longer."""

_ROWS = 2_000
"""Maximum number of lines on one page of a whole request."""


def pages_of(lines: Sequence[DisplayLine]) -> list[range]:
    """Split lines into one or more pages, and return the line indexes of each page."""
    starts, room = [0], _ROOM
    for index, line in enumerate(lines):
        room -= len(line.text)
        if index > starts[-1] and (room < 0 or index - starts[-1] == _ROWS):
            starts.append(index)
            room = _ROOM - len(line.text)
    return [range(start, end) for start, end in pairwise([*starts, len(lines)])]


def content_of(lines: Sequence[DisplayLine], label: str) -> Html:
    """Render lines as rows, with `label` for screen readers."""
    has_numbers = any(line.number is not None for line in lines)
    rows = [_row(line, has_numbers=has_numbers) for line in lines]
    return element('div', *rows, class_='lines', role='group', aria_label=label)


def _row(line: DisplayLine, *, has_numbers: bool) -> Html:
    if line.kind == 'meta':
        return element('p', line.text, class_='row ours meta')
    number = element('span', '' if line.number is None else str(line.number), class_='number') if has_numbers else None
    sign = element('span', _sign(line), class_='sign', aria_hidden='true')
    spoken = _SPOKEN.get(line.kind)
    text = element(
        'span' if line.kind in OURS else 'code',
        None if spoken is None else element('span', spoken, class_='spoken'),
        *_spanned(line),
        class_='text',
    )
    owner = ' ours' if line.kind in OURS else ''
    return element('div', number, sign, text, class_=f'row {line.kind}{owner}')


def _sign(line: DisplayLine) -> str:
    if line.kind == 'command':
        return '$' if line.is_first else '>'
    return _SIGNS.get(line.kind, '│')


def _spanned(line: DisplayLine) -> Sequence[str]:
    parts: list[str] = []
    at = 0
    for span in line.spans:
        parts += [line.text[at : span.start], element('span', line.text[span.start : span.end], class_=span.role)]
        at = span.end
    return [joined(*parts), line.text[at:]]


@dataclass(frozen=True)
class PageContext:
    """Facts about the page and the visitor, for links and forms."""

    base: str
    """Mount path of the application, without a trailing slash."""
    visitor: Approver
    """The logged-in approver."""
    token: str
    """Token that the approver's forms must contain."""
    can_log_out: bool
    """Whether the visitor can log out."""
    has_runs: bool = False
    """Whether there are durable runs to show."""
    has_log: bool = False
    """Whether the page shows an audit log."""
    has_lists: bool = True
    """Whether the visitor can see other requests."""


def card_of(entry: InboxEntry, context: PageContext, *, page: int | None = None) -> Html:
    """Render a request with its forms. `page` shows one page of the whole content, counted from 1; `None` leaves out
    the middle of long content.
    """
    request = entry.request
    shown = display(request)
    lines, turning = shown.lines, None
    name = name_of(request.tool_name)
    if page is not None:
        lines, turning = _turned(display(request, whole=True).lines, page, _whole_address(entry, context))
    elif not shown.is_whole:
        link = element('a', 'Show everything', href=_whole_address(entry, context))
        turning = element('p', 'Some content is not shown. ', link, class_='notice')
    return element(
        'article',
        _head(entry, name),
        _facts(request),
        content_of(lines, f'Content of {name}'),
        *(element('p', f'Warning: {text}', class_='warning') for text in warnings_of(request)),
        turning,
        _foot(entry, context, name, is_whole=shown.is_whole),
        class_=f'card {entry.state}',
        id=f'request-{entry.id}',
        data_key=entry.id,
        data_response=response_key(request),
        data_name=name,
        aria_labelledby=f'title-{entry.id}',
    )


def response_key(request: ApprovalRequest) -> str | None:
    """Return a key by which the page's script keeps the requests of one model response together."""
    response = response_of(request)
    return None if response is None else sha256(response.encode()).hexdigest()[:16]


def _whole_address(entry: InboxEntry, context: PageContext) -> str:
    return f'{context.base}/requests/{entry.id}?whole=1'


def _turned(lines: Sequence[DisplayLine], page: int, address: str) -> tuple[Sequence[DisplayLine], Html | None]:
    """Return the lines of page `page` (or of the last page if there are fewer pages), and links to the other pages."""
    pages = pages_of(lines)
    page = min(page, len(pages))
    shown = pages[page - 1]
    if len(pages) == 1:
        return lines, None
    links = [
        element('a', text, href=f'{address}&page={other}', rel=rel)
        for text, other, rel in (
            ('First', 1, 'first'),
            ('Previous', page - 1, 'prev'),
            ('Next', page + 1, 'next'),
            ('Last', len(pages), 'last'),
        )
        if other != page and 1 <= other <= len(pages)
    ]
    position = f'Page {page:,} of {len(pages):,}: lines {shown.start + 1:,} to {shown.stop:,} of {len(lines):,}. '
    spaced = [part for link in links for part in (link, ' ')]
    return lines[shown.start : shown.stop], element(
        'nav', position, *spaced, class_='notice', aria_label='Pages of the content'
    )


def _head(entry: InboxEntry, name: str) -> Html:
    when = [timed('asked at ', entry.posted_at)]
    expires = entry.content.expires_at
    if expires is not None and entry.state == 'pending':
        when.append(timed('expires at ', expires))
    place = place_in_response(entry.request)
    position = None if place is None else element('span', f'request {place[0]} of {place[1]}')
    return element(
        'header',
        element('h2', name, id=f'title-{entry.id}', tabindex='-1'),
        element('p', position, *when, class_='when'),
    )


def timed(before: str, moment: datetime | None) -> Html:
    """Render a time in UTC, which the page's script replaces with local time; `None` is a damaged time."""
    if moment is None:
        return element('span', before, 'a time that is damaged')
    return element('span', before, element('time', time_of(moment), datetime=moment.isoformat()))


def _facts(request: ApprovalRequest) -> Html | None:
    found = facts(request)
    if request.run_id is not None:
        found = [*found, ('run', short_name(request.run_id))]
    if not found:
        return None
    return element('dl', *(part for label, text in found for part in (element('dt', label), element('dd', text))))


def _foot(entry: InboxEntry, context: PageContext, name: str, *, is_whole: bool) -> Html:
    if entry.state != 'pending':
        return outcome_block(entry)
    problem = why_not(entry, context.visitor)
    if problem is not None:
        text = f'{short_name(context.visitor.id)} may not answer this request: {problem}.'
        return element('div', element('p', text, class_='notice'), class_='actions')
    request = f'{context.base}/requests/{entry.id}'
    options = answer_options(entry.request, is_whole=is_whole)
    edit = None
    if 'edit' in options.answers:
        edit = element('a', LABELS['edit'], class_='button', href=f'{request}/edit', aria_label=f'Edit {name}')
    return element(
        'form',
        *hidden(context, digest=entry.digest),
        _responding(entry, options, name),
        note_field(f'note-{entry.id}'),
        element('div', *buttons(name, can_approve='approve' in options.answers), edit, class_='buttons'),
        _remembering(options, name),
        _denying(options, name),
        method='post',
        action=f'{request}/answer',
        class_='actions answer',
    )


def hidden(context: PageContext, **values: str) -> Sequence[Html]:
    """Return the hidden fields of a form, and a hidden button for the Enter key.

    Without the hidden button, Enter in a field would press the first visible button and answer by accident. The hidden
    button comes first and does nothing, because its form method has no effect outside of a dialog. The hidden button is
    not disabled, because in a form with choices, Chromium would skip a disabled button and press the next button
    (test_stories.py: test_enter_in_a_field_answers_nothing).
    """
    fields = {'csrf': context.token, **values}
    inputs = (element('input', type='hidden', name=key, value=value) for key, value in fields.items())
    return [element('button', type='submit', formmethod='dialog', hidden=True), *inputs]


def note_field(identifier: str) -> Html:
    """Render the field for a note."""
    return element(
        'p',
        element('label', 'Note to the model if you deny', for_=identifier),
        element('textarea', id=identifier, name='note', rows='1', maxlength='4000', autocomplete='off'),
        class_='note',
    )


def buttons(name: str, *, count: int | None = None, can_approve: bool = True) -> Sequence[Html]:
    """Render the buttons that approve or deny one request or, with `count`, several requests."""
    every = '' if count is None else f' all {count}'
    kinds: tuple[AnswerKind, ...] = ('approve', 'deny') if can_approve else ('deny',)
    return [_button(kind, f' {name}', kind, every) for kind in kinds]


def _button(kind: AnswerKind, label: str, look: str, more: str = '') -> Html:
    text = f'{LABELS[kind]}{more}'
    return element('button', text, type='submit', name='answer', value=kind, class_=look, aria_label=f'{text}{label}')


def _responding(entry: InboxEntry, options: AnswerOptions, name: str) -> Html | None:
    """Render the field for an answer in the tool's place, unfolded if there is no other way to let the run go on."""
    if 'respond' not in options.answers:
        return None
    identifier = f'response-{entry.id}'
    return element(
        'details',
        element('summary', LABELS['respond']),
        element('label', 'Result, which the model reads; the tool does not run', for_=identifier),
        element('textarea', id=identifier, name='response', rows='2', maxlength='4000', autocomplete='off'),
        element('div', _button('respond', f': {name}', 'remember'), class_='buttons'),
        class_='response',
        open='approve' not in options.answers,
    )


def _remembering(options: AnswerOptions, name: str) -> Html | None:
    if not options.spans:
        return None
    if len(options.remember_options) == 1:
        [(kind, label)] = options.remember_options
        covered = joined(
            element('p', f'This approval will cover {label}.'),
            element('input', type='hidden', name='remember_option', value=kind),
        )
    else:
        rows = [
            element(
                'label',
                element('input', type='radio', name='remember_option', value=kind, checked=number == 0),
                f' {label}',
            )
            for number, (kind, label) in enumerate(options.remember_options)
        ]
        covered = element('fieldset', element('legend', 'This approval will cover'), *rows)
    spans = [_button(span, f': {name}', 'remember') for span in options.spans]
    return element(
        'details', element('summary', 'Approve and remember'), covered, element('div', *spans, class_='buttons')
    )


def _denying(options: AnswerOptions, name: str) -> Html | None:
    """Render the denial for the session, with what it covers."""
    if options.denial_covers is None:
        return None
    return element(
        'details',
        element('summary', 'Deny and remember'),
        element('p', f'Until the session ends, this denial will cover {options.denial_covers}, without a question.'),
        element('div', _button('deny_session', f': {name}', 'deny'), class_='buttons'),
    )


def outcome_block(entry: InboxEntry) -> Html:
    """Render the outcome of a request, with its note and edited arguments."""
    when = None if entry.settled_at is None else timed(', ', entry.settled_at)
    decision = None if entry.answer is None else entry.answer.decision
    response = None if decision is None else decision.response
    look = entry.state if response is None else 'answered'
    parts: list[Html] = [element('p', entry.outcome, when, class_=f'outcome {look}')]
    written = response if isinstance(response, str) or response is None else canonical_json(response)
    for label, text in (('Note:', None if decision is None else decision.note), ('Result:', written)):
        if text:
            rows = [element('p', escape_line(line), class_='quote') for line in text.split('\n')[:50]]
            parts.append(element('div', element('p', label), *rows, class_='told'))
    changes = visible_changes(entry)
    if changes is not None:
        asked = entry.request.model_copy(update={'args': changes, 'payload': changes, 'presentation': None})
        changed = content_of(display(asked).lines, 'The changed arguments')
        parts.append(element('div', element('p', 'Changed arguments:'), changed, class_='told'))
    return element('div', *parts, class_='actions settled')

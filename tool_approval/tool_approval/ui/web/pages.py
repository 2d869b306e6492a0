"""Render whole pages: the list of open requests, the form to edit arguments, and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from string import Template

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse

from tool_approval.answering import may_approve_together
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import display, facts, name_of
from tool_approval.inbox import InboxEntry
from tool_approval.inbox.entry import short_name
from tool_approval.inbox.inbox import Entries

from .cards import PageContext, buttons, card_of, hidden, note_field, response_key
from .html import Html, element, joined, markup
from .view import group_of, response_of, why_not


@lru_cache(maxsize=1)
def _template() -> Template:
    return Template(files('tool_approval.ui.web').joinpath('static', 'page.html').read_text('utf-8'))


def base_of(request: Request) -> str:
    """Return the mount path of the application, without a trailing slash."""
    return str(request.scope.get('root_path', '')).rstrip('/')


def page(
    request: Request,
    title: str,
    *body: str | None,
    context: PageContext | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    is_live: bool = False,
) -> HTMLResponse:
    """Return a page. A page without a context has no navigation. If `is_live`, the script of the page updates the
    list.
    """
    base = base_of(request)
    written = _template().substitute(
        base=markup(base),
        title=markup(title),
        navigation='' if context is None else _navigation(request, context),
        body=joined(*body),
        live='true' if is_live else 'false',
        token='' if context is None else context.token,
    )
    return HTMLResponse(written, status, headers=dict(headers or {}))


def message_page(
    request: Request, message: str, *, status: int, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """Return a page with a message."""
    back = element('p', element('a', 'Back to the open requests', href=f'{base_of(request)}/'))
    title = {401: 'Not logged in', 404: 'Not found'}.get(status, 'Refused')
    return page(
        request,
        title,
        element('p', sentence(message), class_='notice', role='alert'),
        back,
        status=status,
        headers=headers,
    )


def sentence(text: str) -> str:
    """Return the clause as a sentence, with a capital letter and a full stop."""
    return f'{text[:1].upper()}{text[1:]}.'


def _navigation(request: Request, context: PageContext) -> Html:
    who = element(
        'span', element('span', 'Logged in as ', class_='spoken'), short_name(context.visitor.id), class_='who'
    )
    if not context.has_lists:
        return who
    here = request.url.path.removeprefix(context.base)
    places = [('Open', '/'), ('History', '/history')]
    places += [('Runs', '/runs')] if context.has_runs else []
    places += [('Log', '/log')] if context.has_log else []
    links = [
        element('a', text, href=f'{context.base}{path}', aria_current='page' if here == path else None)
        for text, path in places
    ]
    leave = None
    if context.can_log_out:
        csrf = element('input', type='hidden', name='csrf', value=context.token)
        button = element('button', 'Log out', type='submit')
        leave = element('form', csrf, button, method='post', action=f'{context.base}/logout')
    return joined(element('nav', *links, aria_label='Pages'), who, leave)


AT_ONCE = 50
"""Maximum number of open requests on the page. More requests appear when the shown requests are answered."""

_FACTS: Mapping[str, Callable[[ApprovalRequest], str | None]] = {
    'tool': lambda request: request.tool_name,
    'agent': lambda request: request.facts.caller,
    'run': lambda request: request.run_id,
}
"""For each query parameter, a function that returns the part of a request that is compared with the parameter."""


class Filter:
    """Filters requests by the tool, agent and run in a URL's query."""

    def __init__(self, query: QueryParams) -> None:
        """Read the query parameters. A parameter with an empty value filters nothing."""
        self._wanted = {name: value for name in _FACTS if (value := query.get(name))}

    def passes(self, entry: InboxEntry) -> bool:
        """Return whether a request passes the filter."""
        return all(_FACTS[name](entry.request) == value for name, value in self._wanted.items())

    def form(self, entries: Sequence[InboxEntry], base: str) -> Html:
        """Render the filter form with the values found in `entries`."""
        fields: list[Html] = []
        for name, fact in _FACTS.items():
            wanted = self._wanted.get(name)
            values = sorted({value for each in entries if (value := fact(each.request)) is not None})
            if wanted is not None and wanted not in values:
                values.append(wanted)
            fields.append(choice(name, values[:200], wanted))
        button = element('button', 'Filter', type='submit')
        return element('form', *fields, button, method='get', action=f'{base}/', id='filter', aria_label='Filter')


def search_form(query: QueryParams, base: str) -> Html:
    """Render the search form of the history. The page's script interprets the chosen day in local time."""
    return element(
        'form',
        element('p', element('label', 'Search', for_='q'), _input('search', 'q', query)),
        element('p', element('label', 'Settled until', for_='until'), _input('date', 'until', query)),
        element('button', 'Search', type='submit'),
        method='get',
        action=f'{base}/history',
        id='search',
        role='search',
    )


def choice(name: str, values: Sequence[str], wanted: str | None) -> Html:
    """Render a filter's list of values to choose from, including `all`."""
    options = [element('option', short_name(each), value=each, selected=each == wanted) for each in values]
    select = element('select', element('option', 'all', value=''), *options, id=f'by-{name}', name=name)
    return element('p', element('label', name.capitalize(), for_=f'by-{name}'), select)


def _input(kind: str, name: str, query: QueryParams) -> Html:
    return element('input', type=kind, id=name, name=name, value=query.get(name, ''), autocomplete='off')


def shown_text(entry: InboxEntry) -> str:
    """Return the searchable text of a settled request, case-folded and without hidden arguments."""
    request = entry.request
    note = None if entry.answer is None else entry.answer.decision.note
    texts = [name_of(request.tool_name), request.run_id or '', entry.outcome, note or '']
    texts += [text for _, text in facts(request)]
    texts += [line.text for line in display(request).lines]
    return '\n'.join(texts).casefold()


def in_order(entries: Sequence[InboxEntry]) -> list[InboxEntry]:
    """Move all entries of a model response to the position of its first entry, in the order of the response's calls."""
    first: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for number, entry in enumerate(entries):
        place = first.setdefault(response_of(entry.request) or entry.id, number)
        places.append((place, entry.request.facts.position or 0))
    return [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]


def grouped(entries: Sequence[InboxEntry]) -> list[list[InboxEntry]]:
    """Group requests that belong together. Each group is at the position of its first request."""
    groups: dict[str, list[InboxEntry]] = {}
    for entry in entries:
        groups.setdefault(group_of(entry.request) or entry.id, []).append(entry)
    return list(groups.values())


def damaged(entries: Entries) -> Html | None:
    """Render the number of open requests that cannot be read."""
    count = len(entries.damaged)
    if not count:
        return None
    what = '1 open request is' if count == 1 else f'{count:,} open requests are'
    told = f'{what} damaged, and cannot be shown or answered: another program changed the inbox, or a later version.'
    return element('p', told, class_='notice', id='damaged')


def list_of(entries: Sequence[InboxEntry], context: PageContext) -> Html:
    """Render open requests. After each group, add a form that answers all requests of the group together."""
    items: list[Html] = []
    for group in grouped(in_order(entries)[:AT_ONCE]):
        items += [card_of(entry, context) for entry in group]
        mine = [entry for entry in group if why_not(entry, context.visitor) is None]
        if len(mine) > 1:
            items.append(_group_form(mine, context))
    more = len(entries) - AT_ONCE
    rest = element('p', f'{more:,} more open requests.', class_='notice', id='more') if more > 0 else None
    empty = element('p', 'No open requests.', class_='empty', id='empty', hidden=bool(entries))
    return element('div', empty, element('div', *items, id='open'), rest, id='list', data_count=str(len(entries)))


def _group_form(group: Sequence[InboxEntry], context: PageContext) -> Html:
    items = [f'{entry.id}.{entry.digest}' for entry in group]
    # The same requests give the same key, so that the page's script notices other requests.
    key = f'group-{sha256(" ".join(items).encode()).hexdigest()[:16]}'
    count = len(group)
    fields = [element('input', type='hidden', name='item', value=item) for item in items]
    approve, deny = buttons('of them together', count=count)
    are_whole = may_approve_together([entry.request for entry in group])
    text = f'The {count} requests above belong together.'
    if not are_whole:
        text += ' Parts of some requests are not shown, so approve the requests one by one.'
    return element(
        'form',
        *hidden(context),
        *fields,
        element('p', text),
        note_field(f'note-{key}'),
        element('div', approve if are_whole else None, deny, class_='buttons'),
        method='post',
        action=f'{context.base}/answers',
        class_='actions group',
        id=key,
        data_key=key,
        data_response=response_key(group[0].request),
        data_members=' '.join(entry.id for entry in group),
    )

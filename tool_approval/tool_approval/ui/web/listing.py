"""The open requests as a list: filtered, with those that belong together beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from starlette.datastructures import QueryParams

from tool_approval.display import is_shown_whole
from tool_approval.inbox import InboxEntry

from .cards import Place, buttons, card_of, hidden, note_field, response_key
from .html import Html, element
from .view import agent_of, group_of, response_of, why_not
from .wording import short

AT_ONCE = 50
"""Chosen: as many as a person reads in one go; the next come when these are answered."""

_NAMES = ('tool', 'agent', 'run')


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which requests to show: those of this tool, agent and run; `None`: of any."""

    tool: str | None = None
    """The tool's name."""
    agent: str | None = None
    """The name of the agent that calls it."""
    run: str | None = None
    """The run's id."""

    @classmethod
    def of(cls, query: QueryParams) -> Filter:
        """The filter that an address names; an empty value is none."""
        return cls(**{name: query.get(name) or None for name in _NAMES})

    def passes(self, entry: InboxEntry) -> bool:
        """Whether a request is to be shown."""
        return all(wanted in (None, found) for wanted, found in zip(self._wanted(), _facts(entry), strict=True))

    def _wanted(self) -> tuple[str | None, ...]:
        return (self.tool, self.agent, self.run)

    def form(self, entries: Sequence[InboxEntry], base: str) -> Html:
        """The choices there are."""
        fields: list[Html] = []
        for index, (name, wanted) in enumerate(zip(_NAMES, self._wanted(), strict=True)):
            values = sorted({value for each in entries if (value := _facts(each)[index]) is not None})
            if wanted is not None and wanted not in values:
                values.append(wanted)
            options = [element('option', short(each), value=each, selected=each == wanted) for each in values[:200]]
            select = element('select', element('option', 'all', value=''), *options, id=f'by-{name}', name=name)
            fields.append(element('p', element('label', name.capitalize(), for_=f'by-{name}'), select))
        button = element('button', 'Filter', type='submit')
        return element('form', *fields, button, method='get', action=f'{base}/', id='filter', aria_label='Filter')


def _facts(entry: InboxEntry) -> tuple[str | None, ...]:
    return (entry.request.tool_name, agent_of(entry.request), entry.request.run_id)


def in_order(entries: Sequence[InboxEntry]) -> list[InboxEntry]:
    """Entries with those of one response together, in the response's order, where the first of them was."""
    first: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for number, entry in enumerate(entries):
        position = entry.request.metadata.get('position')
        place = first.setdefault(response_of(entry.request) or entry.id, number)
        places.append((place, position if type(position) is int else 0))
    return [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]


def grouped(entries: Sequence[InboxEntry]) -> list[list[InboxEntry]]:
    """Requests that belong together, in one list each, where the first of them stood."""
    groups: dict[str, list[InboxEntry]] = {}
    for entry in entries:
        groups.setdefault(group_of(entry.request) or entry.id, []).append(entry)
    return list(groups.values())


def list_of(entries: Sequence[InboxEntry], place: Place) -> Html:
    """The cards of open requests, and a form after each group of several."""
    items: list[Html] = []
    for group in grouped(in_order(entries)[:AT_ONCE]):
        items += [card_of(entry, place) for entry in group]
        mine = [entry for entry in group if why_not(entry, place.visitor) is None]
        if len(mine) > 1:
            items.append(_group_form(mine, place))
    more = len(entries) - AT_ONCE
    rest = element('p', f'{more:,} more wait behind these.', class_='notice', id='more') if more > 0 else None
    empty = element('p', 'Nothing waits for an answer.', class_='empty', id='empty', hidden=bool(entries))
    return element('div', empty, element('div', *items, id='open'), rest, id='list', data_count=str(len(entries)))


def _group_form(group: Sequence[InboxEntry], place: Place) -> Html:
    items = [f'{entry.id}.{entry.digest}' for entry in group]
    # The same requests make the same form, so that a page sees when there are others.
    key = f'group-{sha256(" ".join(items).encode()).hexdigest()[:16]}'
    count = len(group)
    fields = [element('input', type='hidden', name='item', value=item) for item in items]
    approve, deny = buttons('of them together', approve=f'Approve all {count}', deny=f'Deny all {count}')
    are_whole = all(is_shown_whole(entry.request) for entry in group)
    told = f'These {count} requests above belong together.'
    if not are_whole:
        told += ' Not all are shown whole, so they are approved one by one.'
    return element(
        'form',
        *hidden(place),
        *fields,
        element('p', told),
        note_field(f'note-{key}'),
        element('div', approve if are_whole else None, deny, class_='buttons'),
        method='post',
        action=f'{place.base}/answers',
        class_='actions group',
        id=key,
        data_key=key,
        data_response=response_key(group[0].request),
        data_members=' '.join(entry.id for entry in group),
    )

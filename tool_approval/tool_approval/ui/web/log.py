"""Show an audit log: who let each call run, when, and what became of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tool_approval.audit.calls import logged_calls
from tool_approval.audit.reading import call_in, read_newest, text_in, what_of
from tool_approval.core.errors import AuditError
from tool_approval.display import escape_line

from .cards import PageContext, timed
from .figures import FIGURES_OF, figures
from .guard import draw_apart
from .html import Html, element
from .pages import choice, page
from .refusals import HttpRefusal

T = TypeVar('T')

Entry: TypeAlias = Mapping[str, Any] | None
"""An entry, or `None` for a line that is none."""

LOG_AT_ONCE = 100
"""Number of entries on a page of the log."""

SEARCHED_AT_ONCE = 1 << 23
"""Number of bytes of a log that one page searches, some 9,000 entries. Chosen: half a second of computing."""

_EXPORTED_AT_ONCE = 1_000
"""Number of lines that the export reads before it sends those that were chosen. Other visitors wait meanwhile."""

_LONGEST_SEARCH = 200
"""Maximum number of characters in a search text."""

_LONGEST_CALL = 600
"""Number of characters of a call on the page. The export has all of them."""

_EVENTS = ('question', 'decision', 'outcome', 'unasked', 'blocked', 'settings')
_COLUMNS = ('When', 'For', 'What', 'Call')


class LogRoutes:
    """Handlers of the pages of a log. Nothing in it is checked; `tool-approval audit verify` does that."""

    def __init__(self, log: str | os.PathLike[str], context: Callable[[Request], Awaitable[PageContext]]) -> None:
        """Show a log to the visitors that `context` finds."""
        self._log = log
        self._context = context
        self._turn = asyncio.Semaphore()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the log."""
        return [
            Route('/log', self.show, methods=['GET']),
            Route('/log/export', self.export, methods=['GET']),
        ]

    async def show(self, request: Request) -> Response:
        """Show entries, newest first. The parameter `q` contains words to search for, and `event` a kind of entry."""
        context = await self._context(request)
        query, chosen = request.query_params, _Chosen(request.query_params)
        before = _position(query.get('before'))
        found, rest = await self._apart(lambda: self._found(chosen, before), _Found([], None))
        rows = [_row(entry) for entry in found]
        older = None
        if rest is not None:
            address = urlencode({**chosen.query, 'before': str(rest)})
            word = 'Older' if len(rows) == LOG_AT_ONCE else 'Search older entries'
            older = element('p', element('a', word, href=f'{context.base}/log?{address}', rel='next'))
        table = element(
            'table',
            element('thead', element('tr', *(element('th', name, scope='col') for name in _COLUMNS))),
            element('tbody', *rows),
            id='log',
        )
        nothing = 'No matching entries' if chosen.query else 'The log is empty'
        empty = element('p', f'{nothing} here.' if older is not None else f'{nothing}.', class_='empty')
        link = f'{context.base}/log/export?{urlencode(chosen.query)}'
        export = element('p', element('a', 'Export these entries', href=link, download='audit.jsonl'))
        return page(
            request,
            'Log',
            None if chosen.query or before is not None else await self._figures(),
            chosen.form(context.base),
            *((table, older, export) if rows else (empty, older)),
            context=context,
        )

    async def export(self, request: Request) -> Response:
        """Send the entries that were chosen, one JSON object a line, newest first."""
        await self._context(request)
        chosen, entries = _Chosen(request.query_params), read_newest(self._log)
        first = await self._apart(lambda: _lines(chosen, entries), [])

        async def sent() -> AsyncIterator[str]:
            lines = first
            while lines:
                if text := ''.join(lines):
                    yield text
                lines = await self._apart(lambda: _lines(chosen, entries), [])

        name = {'Content-Disposition': 'attachment; filename="audit.jsonl"'}
        return StreamingResponse(sent(), media_type='application/x-ndjson', headers=name)

    async def _figures(self) -> Html | None:
        newest: list[Entry] = []

        def read() -> None:
            with suppress(AuditError):  # a line that is too long; the table says so where it comes
                newest.extend(entry for _, entry in islice(read_newest(self._log), FIGURES_OF + 1))

        await self._apart(read, None)
        return figures(list(logged_calls(reversed(newest[:FIGURES_OF]))), is_part=len(newest) > FIGURES_OF)

    def _found(self, chosen: _Chosen, before: int | None) -> _Found:
        found: list[Entry] = []
        start = last = None
        for at, entry in read_newest(self._log, before):
            start = at if start is None else start
            if chosen.passes(entry):
                if len(found) == LOG_AT_ONCE:
                    return _Found(found, last)
                found.append(entry)
            last = at
            if start - at > SEARCHED_AT_ONCE and at > 0:
                return _Found(found, at)
        return _Found(found, None)

    async def _apart(self, read: Callable[[], T], missing: T) -> T:
        """Read in a thread, for one visitor at a time. `missing` stands for a log that does not exist yet.

        Raises:
            HttpRefusal: The log cannot be read.
        """
        try:
            return await draw_apart(self._turn, read)
        except FileNotFoundError:
            return missing
        except (OSError, AuditError):
            # The text of the error names the file, which visitors must not see.
            raise HttpRefusal(503, 'unavailable', 'the log cannot be read') from None


class _Found(NamedTuple):
    """Entries for a page."""

    entries: list[Entry]
    rest: int | None
    """Position before which the search goes on; `None` at the beginning of the log."""


class _Chosen:
    """The entries that a URL's query asks for."""

    def __init__(self, query: QueryParams) -> None:
        self._text = query.get('q', '')[:_LONGEST_SEARCH]
        self._words = self._text.casefold().split()
        self._event = query.get('event', '')
        self.query = {name: value for name, value in (('q', self._text), ('event', self._event)) if value}
        """The query without parameters that choose nothing."""

    def passes(self, entry: Entry) -> bool:
        """Return whether an entry is asked for."""
        if self._event and (entry is None or entry.get('event') != self._event):
            return False
        if not self._words:
            return True
        known = () if entry is None else (text_in(entry, name) for name in ('at', 'requester', 'caller', 'run_id'))
        text = '\n'.join((*known, what_of(entry), call_in(entry))).casefold()
        return all(word in text for word in self._words)

    def form(self, base: str) -> Html:
        """Render the form that chooses entries."""
        field = element('input', type='search', id='q', name='q', value=self._text, autocomplete='off')
        return element(
            'form',
            element('p', element('label', 'Search', for_='q'), field),
            choice('event', _EVENTS, self._event or None),
            element('button', 'Search', type='submit'),
            method='get',
            action=f'{base}/log',
            id='search',
            role='search',
        )


def _position(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise HttpRefusal(400, 'malformed', '`before` must be a position in the log')
    return int(text)


def _row(entry: Entry) -> Html:
    call = call_in(entry)
    shown = escape_line(call[:_LONGEST_CALL]) + ('...' if len(call) > _LONGEST_CALL else '')
    requester = '' if entry is None or entry.get('requester') is None else text_in(entry, 'requester')
    return element(
        'tr',
        element('td', '-' if (at := _time(entry)) is None else timed('', at)),
        element('td', escape_line(requester)),
        element('td', escape_line(what_of(entry))),
        element('td', element('code', shown)),
    )


def _time(entry: Entry) -> datetime | None:
    try:
        at = None if entry is None else datetime.fromisoformat(text_in(entry, 'at'))
        return None if at is None or at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _lines(chosen: _Chosen, entries: Iterator[tuple[int, Entry]]) -> list[str]:
    """Return the next lines; an empty text for each entry that was not chosen."""
    read = islice(entries, _EXPORTED_AT_ONCE)
    return [f'{json.dumps(entry)}\n' if chosen.passes(entry) else '' for _, entry in read]

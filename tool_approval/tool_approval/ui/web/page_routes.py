"""Handle the HTTP requests of the page: show lists and forms, and accept answers."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime, timedelta
from hmac import compare_digest
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tool_approval.answering import NotOffered, UnreadableArguments, is_changed, parse_arguments, with_arguments
from tool_approval.display import escape_line, name_of
from tool_approval.inbox import Approver, Inbox, InboxEntry, InboxError, OtherContent

from .bodies import answer, check_group, checked, read_form, single
from .cards import PageContext, card_of, timed
from .edit_form import edit_form, entered_in, preview_of, read_entered
from .guard import draw_apart, wants_json
from .html import Html, element
from .log import LogRoutes
from .pages import Filter, base_of, damaged, list_of, page, search_form, sentence, shown_text
from .refusals import HttpRefusal, refusal_of
from .runs import RunRoutes, Runs
from .view import DecisionBody, why_not
from .visitors import Links, LocalLogin, Visitors

HISTORY_AT_ONCE = 50
"""Number of requests on a page of the history."""

_PAGES_SEARCHED = 20
"""Number of history pages that a search reads before it offers to continue."""

_LONGEST_SEARCH = 200
"""Maximum number of characters in a search text."""

_MOST_TOGETHER = 100
"""Maximum number of requests that an approver can answer together."""

_MOST_PAGES = 9_999_999
"""Maximum page number, far above the number of pages of any request."""

_ANSWERS = ('approve', 'deny', 'deny_session', 'session', 'always', 'respond')


class PageRoutes:
    """Handlers of the pages and their forms."""

    def __init__(
        self,
        inbox: Inbox,
        runs: Runs,
        visitors: Visitors,
        login: LocalLogin | None,
        log: str | os.PathLike[str] | None = None,
        links: Links | None = None,
    ) -> None:
        """Show an inbox. With a `login`, the pages also log visitors in and out; with a `log`, they show this log; with
        `links`, they say which channels cannot be notified.
        """
        self._links = links
        self._log = log
        self._inbox = inbox
        self._runs = runs
        self._visitors = visitors
        self._login = login
        self._turn = asyncio.Semaphore()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all pages."""
        routes: list[BaseRoute] = [
            Route('/', self.open, methods=['GET']),
            Route('/history', self.history, methods=['GET']),
            Route('/answers', self.answer_group, methods=['POST']),
            Route('/requests/{id}', self.one, methods=['GET']),
            Route('/requests/{id}/answer', self.answer, methods=['POST']),
            Route('/requests/{id}/edit', self.edit, methods=['GET']),
            Route('/requests/{id}/edit', self.preview, methods=['POST']),
            *RunRoutes(self._runs, self._visitors, self._context_of).routes(),
        ]
        if self._log is not None:
            routes += LogRoutes(self._log, self._context).routes()
        if self._login is not None:
            routes.append(Route('/logout', self.log_out, methods=['POST']))
        return routes

    async def open(self, request: Request) -> Response:
        """Show open requests, or log the visitor in with the `token` of a link."""
        token = request.query_params.get('token')
        if self._login is not None and token is not None and request.method == 'GET':
            return self._log_in(request, self._login, token)
        context = await self._context(request)
        chosen = Filter(request.query_params)
        entries = await self._inbox.open()
        found = [entry for entry in entries if chosen.passes(entry)]
        body = (chosen.form(entries, context.base), damaged(entries), list_of(found, context))
        failed = () if self._links is None else sorted(self._links.unreached)
        told = [element('p', f'The last notification to {each} failed.', class_='notice') for each in failed]
        return page(request, 'Open requests', *told, *body, context=context, is_live=True)

    async def history(self, request: Request) -> Response:
        """Show settled requests by day, newest first. The parameter `q` contains words to search for."""
        context = await self._context(request)
        query = request.query_params
        before = read_moment(request) or _end_of(query.get('until'))
        words = query.get('q', '')[:_LONGEST_SEARCH].casefold().split()
        chosen = Filter(query)
        found: list[InboxEntry] = []
        after = query.get('after')
        for _ in range(_PAGES_SEARCHED):
            entries = await self._inbox.history(HISTORY_AT_ONCE, before, after=after)
            after = entries[-1].id if len(entries) == HISTORY_AT_ONCE else None
            passed = [entry for entry in entries if chosen.passes(entry)]
            found += await draw_apart(self._turn, lambda passed=passed: _with_words(passed, words))
            if after is None or len(found) >= HISTORY_AT_ONCE:
                break
        cards: list[Html] = []
        for day, entries in groupby(found, key=lambda entry: f'{entry.settled_at:%Y-%m-%d}'):
            cards += [element('h2', f'{day} UTC', class_='day'), *(card_of(entry, context) for entry in entries)]
        older = None
        if after is not None:
            address = urlencode({**query, 'after': after})
            older = element('p', element('a', 'Older', href=f'{context.base}/history?{address}', rel='next'))
        nothing = 'No settled requests yet.' if not query else 'No matching requests.'
        empty = element('p', nothing, class_='empty') if not found else None
        return page(request, 'History', search_form(query, context.base), empty, *cards, older, context=context)

    async def one(self, request: Request) -> Response:
        """Show a request. The query parameter `whole=1` shows the whole content."""
        context = await self._context(request)
        entry = await self._inbox.get(request.path_params['id'])
        if request.query_params.get('whole') != '1':
            card = card_of(entry, context)
        else:
            number = read_number(request, 'page', most=_MOST_PAGES) or 1
            card = await draw_apart(self._turn, lambda: card_of(entry, context, page=number))
        return page(request, 'Request', card, _lineage(entry), context=context)

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        fields = await read_form(request)
        visitor = await self._visitors.changing(request, single(fields, 'csrf'))
        values, changed = _decision_fields(fields), single(fields, 'args')
        if changed is not None:
            try:
                values['override_args'] = parse_arguments(changed)
            except UnreadableArguments as error:
                problem = f'the changed arguments cannot be used: {error}'
                raise HttpRefusal(422, 'invalid_answer', problem) from None
        entry = await answer(self._inbox, request.path_params['id'], checked(DecisionBody, values), visitor)
        if wants_json(request):
            return JSONResponse(_outcome_of(entry))
        return RedirectResponse(f'{base_of(request)}/', 303)

    async def answer_group(self, request: Request) -> Response:
        """Give several requests the same answer; an error for one request does not affect the others."""
        fields = await read_form(request)
        visitor = await self._visitors.changing(request, single(fields, 'csrf'))
        items = [value.partition('.') for key, value in fields if key == 'item']
        if not 0 < len(items) <= _MOST_TOGETHER:
            raise HttpRefusal(400, 'malformed', f'the form must name 1 to {_MOST_TOGETHER} requests')
        values = _decision_fields([field for field in fields if field[0] != 'item'], digest='')
        if 'response' in values:
            raise HttpRefusal(400, 'malformed', 'one result cannot answer several requests')
        if values['approved']:
            await check_group(self._inbox, [request_id for request_id, _, _ in items])
        outcomes: dict[str, dict[str, str]] = {}
        for request_id, _, digest in items:
            body = checked(DecisionBody, {**values, 'digest': digest})
            try:
                outcomes[request_id] = _outcome_of(await answer(self._inbox, request_id, body, visitor))
            except (InboxError, NotOffered) as error:
                outcomes[request_id] = {'outcome': escape_line(f'Not answered: {refusal_of(error).message}')}
        if wants_json(request):
            return JSONResponse({'outcomes': outcomes})
        rows = [element('li', each['outcome']) for each in outcomes.values()]
        return page(
            request, 'Answered together', element('ul', *rows), context=await self._context_of(request, visitor)
        )

    async def edit(self, request: Request) -> Response:
        """Show the form to edit arguments."""
        context = await self._context(request)
        entry = await self._editable(request, context.visitor)
        form = edit_form(entry, context, as_json=request.query_params.get('as') == 'json')
        return page(request, 'Edit arguments', form, context=context)

    async def preview(self, request: Request) -> Response:
        """Show the changed call with a form to approve it, or the problem if the arguments are invalid."""
        fields = await read_form(request)
        visitor = await self._visitors.changing(request, single(fields, 'csrf'))
        entry = await self._editable(request, visitor)
        context = await self._context_of(request, visitor)
        text, problem, status = single(fields, 'args'), None, 200
        entered = None if text is not None else entered_in(fields)
        edited: dict[str, Any] | None = None
        try:
            edited = parse_arguments(text) if text is not None else read_entered(entry, entered or {})
            if request.query_params.get('again') == '1':
                text = None
            elif is_changed(entry.request, edited):
                asked = with_arguments(entry.request, edited)
                preview = await draw_apart(self._turn, lambda: preview_of(entry, asked, context))
                return page(request, 'Approve the changed call', preview, context=context)
            else:
                problem = 'The arguments are unchanged.'
        except UnreadableArguments as error:
            problem, status = f'The arguments are invalid: {escape_line(error.problem)}.', 422
        except NotOffered as error:
            problem, status = sentence(error.problem), 422
        form = edit_form(entry, context, args=edited, text=text, entered=entered, problem=problem)
        return page(request, 'Edit arguments', form, context=context, status=status)

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        assert self._login is not None, '`/logout` is a route only if there is a login'
        fields = await read_form(request)
        await self._visitors.changing(request, single(fields, 'csrf'))
        self._login.end(request)
        response = page(request, 'Logged out', element('p', 'You are logged out. You can close this page.'))
        self._login.set_cookie(request, response, None)
        return response

    def _log_in(self, request: Request, login: LocalLogin, token: str) -> Response:
        # If the link is invalid, the page still opens for a visitor who has a session.
        session = login.redeem(token)
        response = RedirectResponse(f'{base_of(request)}/', 303)
        if session is not None:
            login.set_cookie(request, response, session)
        return response

    async def _editable(self, request: Request, visitor: Approver) -> InboxEntry:
        entry = await self._inbox.get(request.path_params['id'])
        if entry.state != 'pending':
            raise HttpRefusal(409, 'already_settled', f'the request is no longer open. {entry.outcome}')
        problem = why_not(entry, visitor)
        if problem is not None:
            raise HttpRefusal(403, 'not_an_approver', f'you may not answer this request: {problem}')
        if not entry.request.allows('edit'):
            raise HttpRefusal(422, 'invalid_answer', 'the tool does not allow to edit the arguments')
        return entry

    async def _context(self, request: Request) -> PageContext:
        return await self._context_of(request, await self._visitors.visitor(request))

    async def _context_of(self, request: Request, visitor: Approver) -> PageContext:
        token = self._visitors.token(visitor)
        has_runs = await self._runs.has_any()
        return PageContext(
            base_of(request),
            visitor,
            token,
            can_log_out=self._login is not None,
            has_runs=has_runs,
            has_log=self._log is not None,
            has_lists='secret' not in request.path_params,
        )


class LinkRoutes:
    """Handlers of the links for one request and approver."""

    def __init__(self, inbox: Inbox, runs: Runs, links: Links) -> None:
        self._inbox = inbox
        self._links = links
        # Another key than that of the pages, so that a link does not show the token of the approver's session.
        visitors = Visitors(lambda request: links.find(request).approver, secrets.token_bytes(32))
        self._pages = PageRoutes(inbox, runs, visitors, None)

    def routes(self) -> list[BaseRoute]:
        """Return the routes below a link: those of its request."""
        pages = self._pages
        return [
            Route('/', self._bound(pages.one), methods=['GET']),
            Route('/requests/{id}', self._bound(pages.one), methods=['GET']),
            Route('/requests/{id}/answer', self._bound(pages.answer), methods=['POST']),
            Route('/requests/{id}/edit', self._bound(pages.edit), methods=['GET']),
            Route('/requests/{id}/edit', self._bound(pages.preview), methods=['POST']),
        ]

    def _bound(
        self, handle: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def respond(request: Request) -> Response:
            link = self._links.find(request)
            # Attack: the holder of a link answers another request (test_links.py).
            if request.path_params.setdefault('id', link.request_id) != link.request_id:
                raise HTTPException(404)
            entry = await self._inbox.get(link.request_id)
            if not compare_digest(entry.digest, link.digest):
                raise OtherContent
            if entry.state == 'pending':
                return await handle(request)
            told = element('p', entry.outcome, timed(', ', entry.settled_at), class_=f'outcome {entry.state}')
            return page(request, 'Request settled', told, status=200 if request.method in ('GET', 'HEAD') else 409)

        return respond


def read_moment(request: Request) -> datetime | None:
    """Return the time in the query parameter `before`, or `None` if the parameter is missing.

    Raises:
        HttpRefusal: The time is invalid or has no time zone.
    """
    text = request.query_params.get('before')
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise HttpRefusal(400, 'malformed', '`before` must be a time with a zone, such as 2026-03-04T12:00:00Z')
    return moment


def _end_of(day: str | None) -> datetime | None:
    """Return the end of the queried day in UTC, or `None` if the query contains no day.

    Raises:
        HttpRefusal: The date is invalid.
    """
    if not day:
        return None
    try:
        return datetime.combine(date.fromisoformat(day) + timedelta(days=1), datetime.min.time(), UTC)
    except (ValueError, OverflowError):
        raise HttpRefusal(400, 'malformed', '`until` must be a date such as 2026-03-04') from None


def _with_words(entries: list[InboxEntry], words: list[str]) -> list[InboxEntry]:
    if not words:
        return entries
    return [entry for entry in entries if all(word in shown_text(entry) for word in words)]


def read_number(request: Request, name: str, *, most: int) -> int | None:
    """Return the number in the query parameter `name`, or `None` if the parameter is missing.

    Raises:
        HttpRefusal: The value is not a number from 1 to `most`.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 0 < int(text) <= most):
        raise HttpRefusal(400, 'malformed', f'`{name}` must be a number from 1 to {most}')
    return int(text)


def _outcome_of(entry: InboxEntry) -> dict[str, str]:
    """Return the outcome of an answered request, in the form that the page's script reads."""
    at = {} if entry.settled_at is None else {'settled_at': entry.settled_at.isoformat()}
    return {'outcome': entry.outcome, **at}


def _decision_fields(fields: list[tuple[str, str]], digest: str | None = None) -> dict[str, object]:
    """Convert the fields of a form into fields of `DecisionBody`."""
    said = single(fields, 'answer')
    if said not in _ANSWERS:
        raise HttpRefusal(400, 'malformed', f'the answer must be one of {", ".join(_ANSWERS)}')
    values: dict[str, object] = {
        'approved': said in ('approve', 'session', 'always'),
        'note': _text(fields, 'note').strip() or None,
        'digest': single(fields, 'digest') or '' if digest is None else digest,
    }
    if said == 'respond':
        values['response'] = _text(fields, 'response').strip()
        if not values['response']:
            raise HttpRefusal(422, 'invalid_answer', 'the result is empty')
    if said in ('session', 'always'):
        values['remember'] = said
        values['remember_option'] = single(fields, 'remember_option') or ''
    if said == 'deny_session':  # The choice of what to remember, in the same form, is for approvals.
        values['remember'] = 'session'
    return values


def _text(fields: list[tuple[str, str]], name: str) -> str:
    """Return the text of a field; browsers differ in the line ends they send."""
    return (single(fields, name) or '').replace('\r\n', '\n')


def _lineage(entry: InboxEntry) -> Html | None:
    if not entry.request.lineage:
        return None
    rows = [
        element('li', f'{name_of(level.agent_name)} called ', element('code', name_of(level.tool_name)))
        for level in entry.request.lineage
    ]
    return element('section', element('h2', 'Calls that led to this request'), element('ol', *rows), class_='lineage')

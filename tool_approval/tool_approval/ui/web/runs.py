"""Show durable runs on the page, with forms to cancel a run or to settle a call with an unknown outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.display import escape_line, name_of
from tool_approval.durable import DurableStore, ExecutionRow, RunRow, RunStatus
from tool_approval.durable.steering import (
    RunDetails,
    SteeringRefused,
    UnknownRun,
    approvers_of,
    cancel_run,
    has_ended,
    keeps_runs,
    read_run,
    settle_call,
)
from tool_approval.inbox import Approver, Inbox, InboxEntry, NotAnApprover
from tool_approval.inbox.entry import short_name

from .bodies import checked, read_form, single
from .cards import PageContext, hidden, timed
from .guard import draw_apart
from .html import Html, element, joined
from .pages import base_of, choice, page
from .refusals import HttpRefusal
from .view import SettleBody
from .visitors import Visitors

T = TypeVar('T')

RUNS_AT_ONCE = 50
"""Maximum number of runs on a page."""

_LONGEST_OUTCOME = 2_000
"""Number of characters after which an outcome is cut off. `tool-approval runs show` prints the whole outcome."""

STATUSES: Mapping[str, RunStatus] = {each: each for each in get_args(RunStatus)}
"""Maps each run status, as untyped text, to the typed `RunStatus`."""


class Runs:
    """The durable runs in the store of an inbox. If the store does not support durable runs, no run is found."""

    def __init__(self, inbox: Inbox) -> None:
        self._store = DurableStore(inbox.store) if keeps_runs(inbox.store) else None
        self._turn = asyncio.Semaphore()
        self._has_any = False

    async def has_any(self) -> bool:
        """Return whether the store contains a run, or contained a run at an earlier call of this method."""
        self._has_any = self._has_any or bool(await self.some(None, 1))
        return self._has_any

    async def some(self, status: str | None, limit: int, after: str | None = None) -> Sequence[RunRow]:
        """Return runs, newest first; an empty status matches every run. See `DurableStore.list_runs`.

        Raises:
            HttpRefusal: There is no run status with this name.
        """
        store = self._store
        wanted = STATUSES.get(status or '')
        if status and wanted is None:
            raise HttpRefusal(400, 'malformed', f'`status` must be one of {", ".join(STATUSES)}')
        if store is None or (after is not None and not after.isprintable()):
            return ()
        return await self._apart(lambda: store.list_runs(wanted, limit, after))

    async def get(self, run_id: str) -> RunDetails:
        """Return a run; see `read_run`."""
        store = self._known()
        return await self._apart(lambda: read_run(store, run_id))

    async def cancel(self, run_id: str, by: Approver) -> RunDetails:
        """Cancel a run; see `cancel_run`."""
        store = self._known()
        return await self._apart(lambda: cancel_run(store, run_id, by, at=datetime.now(UTC)))

    async def settle(self, body: SettleBody, by: Approver) -> RunDetails:
        """Settle a call with an unknown outcome; see `settle_call`.

        Raises:
            NotUnknown: The outcome of the call is no longer unknown.
            NotAnApprover: The approver is not allowed to settle the call.
            NobodyMay: No request of the run says who may settle the call.
        """
        found = await self.get(body.run)
        row = found.unsettled(body.key, body.attempt)
        found.check_may_settle(row, by)
        await settle_call(self._known(), row, body.verdict, body.result, by=by.id)
        return await self.get(body.run)

    def _known(self) -> DurableStore:
        if self._store is None:
            raise UnknownRun
        return self._store

    async def _apart(self, act: Callable[[], T]) -> T:
        return await draw_apart(self._turn, act)


class RunRoutes:
    """Handlers of the pages about runs."""

    def __init__(
        self, runs: Runs, visitors: Visitors, context_of: Callable[[Request, Approver], Awaitable[PageContext]]
    ) -> None:
        self._runs = runs
        self._visitors = visitors
        self._context_of = context_of

    def routes(self) -> list[BaseRoute]:
        """Return the routes. Run ids are in the query and forms, not in the path, because an id may contain slashes."""
        return [
            Route('/runs', self.index, methods=['GET']),
            Route('/run', self.one, methods=['GET']),
            Route('/run/cancel', self.cancel, methods=['POST']),
            Route('/run/settle', self.settle, methods=['POST']),
        ]

    async def index(self, request: Request) -> Response:
        """Show the runs, newest first."""
        context = await self._context_of(request, await self._visitors.visitor(request))
        query = request.query_params
        status = query.get('status')
        found = await self._runs.some(status, RUNS_AT_ONCE, query.get('after'))
        filtering = element(
            'form',
            choice('status', tuple(STATUSES), status),
            element('button', 'Filter', type='submit'),
            method='get',
            action=f'{context.base}/runs',
            id='filter',
            aria_label='Filter',
        )
        empty = None if found else element('p', 'No runs found.', class_='empty')
        older = None
        if len(found) == RUNS_AT_ONCE:
            address = urlencode({**query, 'after': found[-1].id})
            older = element('p', element('a', 'Older', href=f'{context.base}/runs?{address}', rel='next'))
        return page(request, 'Runs', filtering, empty, *(_row(run, context) for run in found), older, context=context)

    async def one(self, request: Request) -> Response:
        """Show a run."""
        visitor = await self._visitors.visitor(request)
        context = await self._context_of(request, visitor)
        details = await self._runs.get(request.query_params.get('run', ''))
        return page(request, 'Run', _card(details, context), context=context)

    async def cancel(self, request: Request) -> Response:
        """Cancel a run."""
        fields = await read_form(request)
        visitor = await self._visitors.changing(request, single(fields, 'csrf'))
        run_id = single(fields, 'run') or ''
        await self._runs.cancel(run_id, visitor)
        return RedirectResponse(_address(run_id, base_of(request)), 303)

    async def settle(self, request: Request) -> Response:
        """Settle a call whose outcome is unknown."""
        fields = await read_form(request)
        visitor = await self._visitors.changing(request, single(fields, 'csrf'))
        values: dict[str, Any] = {name: single(fields, name) or '' for name in ('run', 'key', 'verdict')}
        attempt, result = single(fields, 'attempt') or '', single(fields, 'result') or ''
        values['attempt'] = int(attempt) if attempt.isascii() and attempt.isdecimal() and len(attempt) < 10 else 0
        if values['verdict'] == 'result':
            values['result'] = _read_result(result)
        await self._runs.settle(checked(SettleBody, values), visitor)
        return RedirectResponse(_address(values['run'], base_of(request)), 303)


def _read_result(text: str) -> object:
    """Parse a result written in JSON.

    Raises:
        HttpRefusal: The text is not JSON.
    """
    try:
        # Refuses duplicate keys and invalid numbers, as for arguments.
        [result] = decode_arguments(f'{{"result": {text}}}').values()
        return result
    except (NotCanonicalError, ValueError):
        raise HttpRefusal(422, 'invalid_answer', 'the result must be JSON; put text in double quotes') from None


def _address(run_id: str, base: str) -> str:
    return f'{base}/run?{urlencode({"run": run_id})}'


def _row(run: RunRow, context: PageContext) -> Html:
    link = _linked(run.id, context)
    when = element('p', timed('changed at ', run.changed_at), class_='when')
    told = element('p', f'{name_of(run.agent)}: {run.status}')
    return element('article', element('header', element('h2', link), when), told, class_='card run')


def _card(details: RunDetails, context: PageContext) -> Html:
    run = details.run
    outcome = None
    if run.outcome is not None:
        shown = run.outcome[:_LONGEST_OUTCOME] + ('...' if len(run.outcome) > _LONGEST_OUTCOME else '')
        outcome = element(
            'div', element('p', 'Outcome:'), element('p', escape_line(shown), class_='quote'), class_='told'
        )
    return element(
        'article',
        element(
            'header',
            element('h2', escape_line(run.id)),
            element('p', timed('started at ', run.created_at), class_='when'),
        ),
        element('dl', element('dt', 'agent'), element('dd', name_of(run.agent))),
        None if run.parent is None else element('p', 'Nested in ', _linked(run.parent, context)),
        element('p', f'{details.why}.'),
        outcome,
        _listed('Requests', [_asked(entry, context) for entry in details.requests]),
        _listed('Executions', [_execution(row, details, context) for row in details.executions]),
        _listed('Nested runs', [_below(each, context) for each in details.nested]),
        _cancelling(details, context),
        class_='card run',
    )


def _linked(run_id: str, context: PageContext) -> Html:
    return element('a', short_name(run_id), href=_address(run_id, context.base))


def _below(run: RunRow, context: PageContext) -> Html:
    return element('li', _linked(run.id, context), f' of {name_of(run.agent)}: {run.status}')


def _listed(title: str, items: Sequence[Html]) -> Html | None:
    return element('section', element('h3', title), element('ul', *items)) if items else None


def _asked(entry: InboxEntry, context: PageContext) -> Html:
    name = element('a', name_of(entry.request.tool_name), href=f'{context.base}/requests/{entry.id}')
    told = timed(', asked at ', entry.posted_at)
    if entry.state != 'pending':
        return element('li', name, told, f': {entry.outcome}')
    return element('li', name, told, f'; may be answered by {escape_line(approvers_of(entry))}')


def _execution(row: ExecutionRow, details: RunDetails, context: PageContext) -> Html:
    started = ', not started' if row.started_at is None else timed(', started at ', row.started_at)
    settling = _settling(row, details, context) if row.is_unsettled else None
    return element('li', f'{name_of(row.tool_name)}, attempt {row.attempt}: {row.state}', started, settling)


def _settling(row: ExecutionRow, details: RunDetails, context: PageContext) -> Html:
    told = element('p', 'The worker died during this call. The call may have run.', class_='warning')
    problem = _why_not(lambda: details.check_may_settle(row, context.visitor))
    if problem is not None:
        return joined(told, element('p', f'{short_name(context.visitor.id)} may not settle this call: {problem}.'))
    field = f'result-{row.key}-{row.attempt}'
    return element(
        'form',
        told,
        *hidden(context, run=details.run.id, key=row.key, attempt=str(row.attempt)),
        element(
            'p',
            element('label', 'Result in JSON, if the call ran', for_=field),
            element('textarea', id=field, name='result', rows='2', spellcheck='false', autocomplete='off'),
        ),
        element(
            'div',
            *(
                element('button', text, type='submit', name='verdict', value=value)
                for text, value in (
                    ('The call ran, with this result', 'result'),
                    ('Run it again', 'again'),
                    ('Give up', 'give_up'),
                )
            ),
            class_='buttons',
        ),
        method='post',
        action=f'{context.base}/run/settle',
    )


def _cancelling(details: RunDetails, context: PageContext) -> Html | None:
    if has_ended(details.run):
        return None
    problem = _why_not(lambda: details.check_may_cancel(context.visitor))
    if problem is not None:
        told = f'{short_name(context.visitor.id)} may not cancel this run: {problem}.'
        return element('p', told, class_='notice')
    return element(
        'details',
        element('summary', 'Cancel this run'),
        element(
            'form',
            *hidden(context, run=details.run.id),
            element('p', 'The run and its nested runs end permanently, and their open requests are withdrawn.'),
            element('button', 'Cancel the run', type='submit', class_='deny'),
            method='post',
            action=f'{context.base}/run/cancel',
        ),
    )


def _why_not(check: Callable[[], None]) -> str | None:
    """Call `check`, and return its reason for a refusal, or `None`."""
    try:
        check()
    except NotAnApprover as error:
        return error.problem
    except SteeringRefused as error:
        return str(error)
    return None

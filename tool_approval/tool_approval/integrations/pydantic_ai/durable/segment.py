"""Execute one segment of a durable run: start or resume the run, and continue until the run ends or has new questions.

An agent run ends when calls are deferred. After the decisions, a new agent run executes the calls. If the new run also
ends with deferred calls, the durable run can be parked again. Start reading this module at `Segment.run`.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic_ai import AgentRunResult, DeferredToolRequests, DeferredToolResults, RunContext, RunUsage
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturn, UserPromptPart
from pydantic_ai_deferred.nesting import continued
from pydantic_core import to_jsonable_python

from tool_approval.core.binding import Binding
from tool_approval.core.calls import Allowed, Prepared, cannot_be_judged, denied_because
from tool_approval.core.controller import ASKED_ANEW, UNLOGGED, ApprovalController
from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import ApprovalError, AuditError, NotCanonicalError, UsedUp
from tool_approval.core.request import ApprovalRequest, CallFacts
from tool_approval.core.verdict import ApprovalResult
from tool_approval.display import escape_line
from tool_approval.durable import RunRow
from tool_approval.durable.ledger import unknown_text
from tool_approval.durable.store import about_unknown, derived_id
from tool_approval.inbox.entry import write_content
from tool_approval.inbox.errors import RequestTooLarge
from tool_approval.inbox.store import Row
from tool_approval.integrations.pydantic_ai.batch import Batch
from tool_approval.integrations.pydantic_ai.requests import (
    REQUEST_KEY,
    Session,
    facts_of,
    session_of_deps,
    tool_facts,
)
from tool_approval.integrations.pydantic_ai.results import CallPlace

from .answers import Answers, Missing, answer_in, counted, denied
from .keeping import Keeper, ToolChanged
from .nested import first_row, levels_of, result_of
from .state import (
    DecidedExternal,
    Question,
    RunState,
    Stop,
    StopDecisions,
    StoredCall,
    as_json,
    now,
    plain_request,
    stored_call,
    usage_of,
    write_state,
)

if TYPE_CHECKING:
    from .agent import DurableAgent

T = TypeVar('T')

_log = logging.getLogger('tool_approval')


class ToolExited(ApprovalError):
    """A tool tried to end the process."""


class DurableRunCancelled(Exception):
    """The run was cancelled, so none of its calls may run any more."""


class Segment:
    """One segment of a run."""

    def __init__(self, durable: DurableAgent[Any, Any], row: RunRow, number: int, state: RunState) -> None:
        self.durable = durable
        self.row = row
        self.run_id = row.id
        self.number = number
        self.state = state
        self.session: Session = state.session

    async def run(self) -> str | None:
        """Continue the run until it waits or has ended.

        Returns:
            The run's output as JSON, or `None` if the run waits.
        """
        state, agent = self.state, self.durable.agent
        deps = await self.durable.make_deps(state)
        self.session = state.session or self.durable.approvals.session or session_of_deps(deps) or self.run_id
        while True:
            results, usage = None, deepcopy(state.usage)
            if state.stop is not None:
                stop = state.stop = await self._decided(state.stop)
                if stop.decided is None or await self.durable.persistently(partial(self._asks_about_unknown, stop)):
                    await self._park(stop)
                    return None
                if nested := self._nested(stop, stop.decided):
                    await self._park(stop, nested)
                    return None
                results = await self._carried_out(stop, stop.decided, usage)
            # The host counts in the given object, also in a run that fails.
            before, state.usage = state.usage, usage
            keeper, durable = Keeper(self), self.durable
            approvals = durable.approvals.for_keeping(
                keeper, durable.controller.with_ui(durable.ui), ledger=durable.ledger, session=self.session
            )
            try:
                with continued(levels_of(state.lineage)):
                    result: AgentRunResult[Any] = await agent.run(
                        _prompt(state.history) if state.rounds == 0 else None,
                        message_history=None if state.rounds == 0 else state.history,
                        output_type=[agent.output_type, DeferredToolRequests],
                        deferred_tool_results=results,
                        deferred_tool_handler=approvals,
                        deps=deps,
                        usage=usage,
                        run_id=f'{self.run_id}/{state.rounds}',
                        conversation_id=self.run_id,
                    )
            except ToolChanged as changed:
                state.usage = before  # nested runs, which have ended already, are counted again
                state.stop = await self._prepared_again(cast('Stop', state.stop), changed.ctx)
                continue
            state.rounds += 1
            if not isinstance(result.output, DeferredToolRequests):
                return as_json(to_jsonable_python(result.output))
            state.history, state.stop = result.all_messages(), keeper.stop
            assert state.stop is not None, 'only the handler of the segment may end a run before all calls are answered'

    async def _decided(self, stop: Stop) -> Stop:
        """Return a `Stop` that contains the decisions about its calls, or the questions that must be asked first."""
        if stop.decided is not None:
            return stop
        recorded = await self.durable.engine.record('decide', lambda: self._decide(stop))
        return Stop.model_validate_json(zlib.decompress(recorded))

    async def _decide(self, stop: Stop) -> bytes:
        """Find the questions to ask, and decide the calls if there is no question.

        The engine records this method as one step, so that decisions from before a crash are not made again.
        """
        durable = self.durable
        rows = await self._requests()
        answers = self._answers(stop, rows)
        batch = self._batch(stop, durable.controller.with_ui(Answers(answers)))
        prepared = [self._restored(batch, call) for call in stop.calls]
        undecided = [each.request for each in prepared if each.verdict.is_needs_approval]
        shown = {each.tool_call_id: each for each in await durable.controller.triage(undecided) if each is not None}
        questions: list[Question] = []
        at = await self._time() if shown else now()
        for index, call in enumerate(stop.calls):
            request, answer = shown.get(call.id), answers.get(call.id)
            late: list[str] = []
            if (
                answer is not None
                and (until := durable.controller.expires(answer))
                and durable.controller.now() > until
            ):
                # The approval expired while a question about another call was open.
                late, answer = [until.isoformat()], answers.pop(call.id) and None
            if request is None:
                if answer is not None and not answer.approved:
                    prepared[index] = _denied_before(prepared[index], call, answer)
                continue
            # Other arguments, or another definition of the tool, make another question.
            of = [self.state.rounds, call.id, durable.controller.digest_of(request), call.facts.tool_digest, *late]
            found = answer or Missing(request, of)
            if durable.ui.needed(request) > 1:  # the answer to the last question is only a vote
                found = await counted(durable, self.run_id, request, of, rows, at)
            answers.pop(call.id, None)
            asked = self._asked(request, found, at) if isinstance(found, Missing) else found
            if isinstance(asked, ApprovalDecision):
                answers[call.id] = asked
                call.denial = call.denial if asked is found else asked
            else:
                call.request, call.facts = plain_request(request), request.facts
                call.question = asked.id
                questions.append(asked)
        if questions:
            return _compressed(Stop(calls=stop.calls, questions=questions))
        to_do = {str(each.call.tool_call_id): each for each in await batch.decide(prepared)}
        externals: dict[str, DecidedExternal] = {}
        for call in stop.calls:
            if call.id in to_do:
                allowed = to_do[call.id]
                binding = None if allowed.binding is None else allowed.binding.as_json()
                externals[call.id] = DecidedExternal(args=dict(allowed.call.values), binding=binding)
            elif isinstance(given := batch.results.calls.get(call.id), ToolReturn):
                externals[call.id] = DecidedExternal(response=cast('ToolReturn[Any]', given).return_value)
            elif call.is_external:
                externals[call.id] = DecidedExternal(refused=str(batch.results.calls[call.id]))
        batch.results.calls.clear()
        decided = StopDecisions(results=batch.results, externals=externals)
        return _compressed(Stop(calls=stop.calls, decided=decided))

    def _answers(self, stop: Stop, rows: Mapping[str, Row]) -> dict[str, ApprovalDecision]:
        """Return the answers so far, by call id. `rows` are the requests of the run, by id."""
        answers = {call.id: call.denial for call in stop.calls if call.denial is not None}
        for call in stop.calls:
            row = rows.get(call.question or '')
            if row is not None and row.state != 'pending':
                answers[call.id] = answer_in(self.durable, row)
        return answers

    async def _requests(self) -> dict[str, Row]:
        """Return the requests of the run, by id."""
        rows = await self.durable.patiently(lambda: self.durable.store.requests_of(self.run_id))
        return {row.id: row for row in rows}

    def _restored(self, batch: Batch, call: StoredCall) -> Prepared:
        request, verdict = call.restored, ApprovalResult(status=call.status, reason=call.reason)
        if verdict.is_pre_approved:
            # The policy may have changed since.
            judged = self.durable.controller.policy.judge_request(request)
            verdict = judged if judged.is_blocked else verdict
        return batch.restore(_part(self.state.history, call.id), request, verdict)

    def _asked(self, request: ApprovalRequest, missing: Missing, at: datetime) -> Question | ApprovalDecision:
        """Return the question about a request, or the denial if no approver can be asked. The first of several votes is
        logged as the question.
        """
        votes = missing.request.votes
        denial = self._unlogged(request) if votes is None or not votes.agreed else None
        return denial or self._question(missing.request, missing.of, at)

    def _unlogged(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Log that an approver is about to be asked, and return the denial if that cannot be logged."""
        try:
            self.durable.controller.with_ui(self.durable.ui).record_question(request)
        except AuditError as error:
            _log.error('A call of %r was denied: %s', request.tool_name, error)
            return denied(UNLOGGED)
        return None

    async def _time(self) -> datetime:
        """Return the time by the clock of the store, which decides about deadlines."""
        return await self.durable.patiently(self.durable.store.inbox_store.now)

    def _question(self, request: ApprovalRequest, of: Sequence[object], at: datetime) -> Question | ApprovalDecision:
        """Return the question for a request, or the denial if no approver can be asked. `of` determines the
        question's id.
        """
        content = self.durable.ui.content_of(request, at)
        if isinstance(content, ApprovalDecision):
            return content
        try:
            written = write_content(content)
        except (NotCanonicalError, RequestTooLarge) as error:
            return denied(f'The inbox could not store the request ({error}), so the call was denied.')
        made = derived_id(self.durable.key, self.run_id, of)
        return Question(id=made, content=written, expires_at=content.expires_at)

    async def _park(self, stop: Stop, nested: Sequence[RunRow] = ()) -> None:
        """End the segment. The run's state is kept in the store until its requests are answered, and its nested runs,
        which are started in the same step, have ended.
        """
        at, store, questions = now(), self.durable.store, stop.questions
        rows = [Row(id=each.id, owner=self.run_id, content=each.content, posted_at=at) for each in questions]
        deadline = min((each.expires_at for each in questions if each.expires_at is not None), default=None)
        about = {each.id: each.about for each in questions if each.about is not None}
        stop.questions = []
        state = write_state(self.state, 'history')
        await self.durable.patiently(
            lambda: store.park(self.run_id, self.number, state, rows, deadline, nested=nested, about=about, at=at)
        )

    async def _asks_about_unknown(self, stop: Stop) -> bool:
        """Settle calls of unknown outcome, and return whether an approver must be asked about any of them."""
        stop.questions = []
        ledger, asked = self.durable.ledger, {escape_line(call.id): call for call in stop.calls}
        unknown = [row for row in await ledger.unknown(self.run_id) if row.tool_call_id in asked]
        answers = await self._requests() if unknown else {}
        for row in unknown:
            call = asked[row.tool_call_id]
            if await ledger.reconcile(row, call.request.args):
                continue
            text = f'{unknown_text(row)} Approve to run the call again, or deny to give up on the call.'
            facts = call.facts._replace(can_remember_always=False)
            request = self.durable.controller.addressed(call.restored).changed(
                facts, description=text, described_by=None, remember_options=(), answers=ASKED_ANEW
            )
            about, at = about_unknown(row.key, row.attempt), await self._time()
            missing: Missing | ApprovalDecision = Missing(request, about)
            if self.durable.ui.needed(request) > 1:
                missing = await counted(self.durable, self.run_id, request, about, answers, at)
            question = self._question(missing.request, missing.of, at) if isinstance(missing, Missing) else missing
            if isinstance(question, Question):
                found = answers.get(question.id)
                if found is None or found.state == 'pending':
                    stop.questions.append(question.model_copy(update={'about': (row.key, row.attempt)}))
                    continue
                question = answer_in(self.durable, found)
            controller = self.durable.controller.with_ui(Answers({call.id: question}))
            if await controller.ask_anew(request):
                await ledger.again(row)
            else:
                # An approver who approved has not given it up, even if the approval could not be shown or recorded.
                is_person = not question.approved and question.rule is None
                await ledger.give_up(row, ', '.join(question.decided_by) or None if is_person else None)
        return bool(stop.questions)

    def _nested(self, stop: Stop, decided: StopDecisions) -> list[RunRow]:
        """Check the approvals of calls that run durable agents again, and return the nested runs to start."""
        batch, rows = self._batch(stop, self.durable.controller), list[RunRow]()
        session = self.session if isinstance(self.session, str) else None
        for call in stop.calls:
            external, agent = decided.externals.get(call.id), self.durable.nested.get(call.request.tool_name)
            if agent is None or external is None or external.is_settled or external.nested is not None:
                continue
            allowed = self._allowed(batch, call, external)
            match external.args:
                case {'prompt': str(prompt), **others} if not others:
                    external.refused = batch.gate.recheck(allowed) or _counted(batch, allowed)
                case _:  # by an approver, who changed them after the run had ended that knows the schema
                    external.refused = cannot_be_judged(call.request.tool_name, 'the tool takes a text, `prompt`')
                    batch.gate.record(allowed, 'refused')
                    continue
            if external.refused is not None:
                continue
            row = first_row(
                agent, self.row, self.state, call, prompt=prompt, session=session, agent_name=self.durable.name
            )
            external.nested = row.id
            rows.append(row)
        return rows

    def _allowed(self, batch: Batch, call: StoredCall, external: DecidedExternal) -> Allowed:
        request = call.restored.changed(args=external.args)
        binding = None if external.binding is None else Binding.of(external.binding)
        prepared = batch.restore(_part(self.state.history, call.id), request, ApprovalResult.pre_approved())
        return Allowed(call=prepared.call, request=request, binding=binding)

    async def _ended(
        self, batch: Batch, call: StoredCall, external: DecidedExternal, run_id: str, usage: RunUsage
    ) -> None:
        """Answer a call whose nested run has ended, and add the usage of that run."""
        row = await self.durable.patiently(lambda: self.durable.store.get_run(run_id))
        usage.incr(usage_of(row))
        result = result_of(call.request.tool_name, row)

        async def log() -> None:
            outcome = 'executed' if isinstance(result, ToolReturn) else 'failed'
            started_at = None if row is None else row.created_at
            batch.gate.record(self._allowed(batch, call, external), outcome, started_at=started_at)

        # A step, so that the outcome is not logged again after a crash.
        await self.durable.engine.record('nested', log)
        batch.results.calls[call.id] = result

    async def _carried_out(self, stop: Stop, decided: StopDecisions, usage: RunUsage) -> DeferredToolResults:
        """Run the external calls, and return the results with which the agent resumes. The usage of nested runs is
        added to `usage`.
        """
        results = decided.results
        batch = self._batch(stop, self.durable.controller)
        to_do: list[Awaitable[None]] = []
        for call in stop.calls:
            external = decided.externals.get(call.id)
            if external is None:
                continue
            if external.response is not None:
                batch.results.calls[call.id] = ToolReturn(external.response)
                continue
            if external.refused is not None:
                batch.results.calls[call.id] = ToolFailed(external.refused)
                continue
            if external.nested is not None:
                await self._ended(batch, call, external, external.nested, usage)
                continue
            to_do.append(self._external(batch, self._allowed(batch, call, external)))
        await asyncio.gather(*to_do)
        return DeferredToolResults(
            approvals=dict(results.approvals), metadata=dict(results.metadata), calls=batch.results.calls
        )

    async def _external(self, batch: Batch, allowed: Allowed) -> None:
        await self.once(lambda: batch.carry_out(allowed))

    async def _prepared_again(self, stop: Stop, ctx: RunContext[Any]) -> Stop:
        """Prepare the calls of a `Stop` again, because the definition of a tool has changed."""
        requests = self._deferred(stop)
        for call in stop.calls:
            if call.is_made:
                requests.metadata[call.id] = {**call.request.metadata, REQUEST_KEY: call.restored}
        again, before = await self.prepared(ctx, requests), {call.id: call for call in stop.calls}
        for call in again.calls:
            asked = before[call.id]
            if self._identity(call) == self._identity(asked):
                # Attack: memory or a rule now approves a call that the approver denied (test_agent.py:
                # test_a_denial_holds_though_the_tool_of_another_call_has_changed).
                call.question, call.denial = asked.question, asked.denial
        return again

    def _identity(self, call: StoredCall) -> Sequence[object]:
        return [self.durable.controller.digest_of(call.restored), call.facts.tool_digest]

    async def prepared(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> Stop:
        """Return the calls of a response in their stored form."""
        facts = facts_of(ctx, self.session, requester=self.durable.approvals.requester)._replace(run_id=self.run_id)
        batch = Batch(self.durable.controller, requests, external=self.durable.external, facts=facts, ctx=ctx)
        prepared = await batch.prepare()
        count = len(requests.approvals)
        return Stop(
            calls=[
                stored_call(
                    each,
                    is_external=index >= count,
                    is_made=REQUEST_KEY in requests.metadata.get(str(each.request.tool_call_id), {}),
                )
                for index, each in enumerate(prepared)
            ]
        )

    def _deferred(self, stop: Stop) -> DeferredToolRequests:
        return DeferredToolRequests(
            approvals=[_part(self.state.history, each.id) for each in stop.calls if not each.is_external],
            calls=[_part(self.state.history, each.id) for each in stop.calls if each.is_external],
        )

    def _batch(self, stop: Stop, controller: ApprovalController) -> Batch:
        requests = self._deferred(stop)
        return Batch(
            controller,
            requests,
            external=self.durable.external,
            facts=CallFacts(),
            ctx=None,
            ledger=self.durable.ledger,
            place=CallPlace(self.state.history, self.run_id),
        )

    def is_changed(self, ctx: RunContext[Any]) -> bool:
        """Whether a tool's definition has changed since its call was decided."""
        return any(
            tool_facts(ctx, each.request.tool_name).get('tool_digest') != each.facts.tool_digest
            for each in cast('Stop', self.state.stop).calls
            if not each.is_external
        )

    async def once(self, action: Callable[[], Awaitable[T]]) -> T:
        """Run an action that the ledger guards, unless the run was cancelled. If the action itself starts steps of the
        engine, those steps do not belong to the segment.
        """

        async def guarded() -> T:
            row = await self.durable.patiently(lambda: self.durable.store.get_run(self.run_id))
            if row is None or row.status == 'cancelled':
                raise DurableRunCancelled
            return await self.durable.persistently(action)

        try:
            return await self.durable.engine.apart(guarded)
        except (SystemExit, KeyboardInterrupt) as error:
            # Attack: the exception would end the engine's event loop, and with it every run of a process that seems
            # alive (test_agent.py: test_a_tool_that_exits_ends_its_run_and_no_other).
            raise ToolExited(f'a tool raised {type(error).__name__}') from None


def _counted(batch: Batch, allowed: Allowed) -> str | None:
    """Count a call against its remembered approval; return why it may not run, or `None`."""
    try:
        batch.gate.take(allowed)
    except UsedUp as over:
        return over.reason
    return None


def _part(history: Sequence[ModelMessage], call_id: str) -> ToolCallPart:
    """Return the call with this id from the last response."""
    response = next(each for each in reversed(history) if isinstance(each, ModelResponse))
    return next(each for each in response.tool_calls if each.tool_call_id == call_id)


def _prompt(history: Sequence[ModelMessage]) -> Any:
    [part] = history[0].parts
    return cast('UserPromptPart', part).content


def _compressed(stop: Stop) -> bytes:
    # Compressed because each call is in it several times: for the approver, and for the agent.
    return zlib.compress(as_json(stop.model_dump(mode='json')).encode())


def _denied_before(prepared: Prepared, call: StoredCall, answer: ApprovalDecision) -> Prepared:
    """Return a call that the approver has denied, even if memory or a rule would approve it now."""
    note = answer.note or 'The call was denied.'
    reason = denied_because(note) if answer.note and answer.rule is None else note
    facts = call.facts._replace(is_blocked=True, block_reason=reason)
    return prepared._replace(request=call.request.changed(facts))

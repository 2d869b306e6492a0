"""The equivalence property: an inline run gives the model what stopping and resuming gives it.

A random scenario is run by a stock agent that stops with `DeferredToolRequests` and is resumed with
`DeferredToolResults`, and by an agent with a handler that makes the same decisions. Compared are, response by
response: what the model is given for each call id (content, outcome, cause of a retry, metadata), everything else it
is told, which tools executed how often with which arguments, approval and metadata, what was asked, and the output.

The known differences, and nothing else, are left out of the comparison:

- How the answers to one response are grouped into requests, and the order in them and of the executions: stopping
  ends a request, and newer hosts go through the approved calls of a resumed run in the response's order, through those
  of an inline run with the raised deferrals first.
- The ids of runs, and times.
- Usage and retry budgets, which a resumed run starts anew: here they are larger than a scenario can use, and how much
  of one a retry has used (which no model is sent) is left out.
- A deferral raised beside an output that ends the run: stop/resume leaves the call open in the history, an inline run
  says that it was not executed. Both give the run the same output, and no model has been asked since.
- What is shown for a decision: a handler sees the arguments after validation, in the order of the response; whoever
  resumes sees them as the model sent them. What is shown inline is compared with what executes.

What a host lacks is left out on it; see `equivalence/hosts.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, reject, settings
from pydantic_ai import DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ToolCallPart

from .equivalence.runs import CannotResume, run_inline, stop_and_resume
from .equivalence.scenario import Call, Round, Scenario
from .equivalence.strategies import DEEDS, scenarios
from .equivalence.tools import EXTERNAL, KINDS
from .equivalence.transcript import Transcript, differences
from .equivalence.world import World


@pytest.mark.untraced
@given(scenarios())
@settings(max_examples=100, deadline=None)
def test_inline_gives_the_model_the_same_information_as_stop_and_resume(scenario: Scenario):
    check(scenario)


@pytest.mark.slow
@given(scenarios())
@settings(max_examples=10_000, deadline=None)
def test_inline_gives_the_model_the_same_information_as_stop_and_resume_in_10_000_scenarios(scenario: Scenario):
    check(scenario)


def check(scenario: Scenario) -> None:
    asyncio.run(compare(scenario))


async def compare(scenario: Scenario) -> None:
    try:
        expected = (await stop_and_resume(scenario)).closed()
    except CannotResume:
        reject()
    for way in ('run', scenario.way):
        inline, world = await run_inline(scenario, way)
        assert not differences(expected, inline), way
        check_what_was_shown(inline, world)


def check_what_was_shown(inline: Transcript, world: World) -> None:
    """What the handler approved is what executed."""
    approved = [execution for execution in inline.executions if execution.is_approved]
    for tool_call_id, shown in world.shown.items():
        if world.scenario.calls[tool_call_id].approval in (True, ToolApproved()):
            [executed] = [execution.args for execution in approved if execution.tool_call_id == tool_call_id]
            given = ToolCallPart(shown.tool_name, world.scenario.calls[tool_call_id].args)
            assert shown.args_as_dict() == given.args_as_dict()
            assert executed.keys() >= shown.args_as_dict().keys()


@pytest.mark.untraced
def test_the_scenarios_bring_every_decision_and_every_kind_of_tool():
    asked: set[str] = set()
    decided: set[str] = set()
    done: set[str] = set()

    @given(scenarios())
    @settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate], database=None)
    def play(scenario: Scenario) -> None:
        try:
            transcript = asyncio.run(stop_and_resume(scenario))
        except CannotResume:
            reject()
        calls = scenario.calls
        for question in transcript.questions:
            asked.update(KINDS[tool] for tool in question.tools.values())
            decided.update(name_of(calls[each].approval) for each in question.approvals)
            decided.update(name_of(calls[each].result) for each, _ in question.calls)
        done.update(calls[each.tool_call_id].deed for each in transcript.executions)

    play()

    approvals = {'True', 'False', 'ToolApproved', 'ToolApproved, overriding', 'ToolDenied'}
    results = {'str', 'ToolReturn', 'ModelRetry', 'ToolFailed'}
    assert asked == set(KINDS.values()) - {'ordinary'}
    assert decided >= approvals | results
    assert done == set(DEEDS)


def name_of(decision: Any) -> str:
    if isinstance(decision, bool):
        return str(decision)
    if isinstance(decision, ToolApproved) and decision.override_args is not None:
        return 'ToolApproved, overriding'
    return type(decision).__name__


def deny_without_the_message(results: DeferredToolResults) -> None:
    results.approvals['call-0-0'] = ToolDenied()


def approve_what_was_denied(results: DeferredToolResults) -> None:
    results.approvals['call-0-0'] = True


def deny_what_was_approved(results: DeferredToolResults) -> None:
    results.approvals['call-0-1'] = False


def ignore_the_override(results: DeferredToolResults) -> None:
    results.approvals['call-0-1'] = ToolApproved()


def lose_the_metadata(results: DeferredToolResults) -> None:
    results.metadata.clear()


def swap_the_results(results: DeferredToolResults) -> None:
    results.calls.update({'call-0-2': results.calls['call-0-3'], 'call-0-3': results.calls['call-0-2']})


@pytest.mark.parametrize(
    'sabotage',
    [
        deny_without_the_message,
        approve_what_was_denied,
        deny_what_was_approved,
        ignore_the_override,
        lose_the_metadata,
        swap_the_results,
    ],
)
def test_the_comparison_notices_a_changed_answer(sabotage: Callable[[DeferredToolResults], object]):
    scenario = conversation(
        call('declared_async', approval=ToolDenied('not today')),
        call('raised_async', approval=ToolApproved(override_args={'path': 'elsewhere'}), answer_metadata={'by': 'me'}),
        call('deferred_async', result='one'),
        call(EXTERNAL, result='two'),
    )

    expected = asyncio.run(stop_and_resume(scenario)).closed()
    faithful, _ = asyncio.run(run_inline(scenario, 'run'))
    changed, _ = asyncio.run(run_inline(scenario, 'run', sabotage=sabotage))

    assert not differences(expected, faithful)
    assert differences(expected, changed)


def call(tool: str, *, approval: Any = True, result: Any = None, answer_metadata: dict[str, Any] | None = None) -> Call:
    return Call(
        tool=tool,
        args={'path': 'here'},
        deed='returns',
        deferral_metadata=None,
        approval=approval,
        result=result,
        answer_metadata=answer_metadata,
    )


def conversation(*calls: Call) -> Scenario:
    return Scenario(
        rounds=(Round(calls=calls, text=''),),
        output='text',
        end_strategy='graceful',
        mode='parallel',
        carries_metadata=False,
        way='run',
        place='constructor',
        style='async',
        is_meddled=False,
        allows_leaving=False,
    )

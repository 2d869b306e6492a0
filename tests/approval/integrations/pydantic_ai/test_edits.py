"""An approver's edit changes exactly the edited leaves of what runs, or nothing runs."""

import functools
import itertools
import json
from datetime import date
from typing import Annotated, Any

import pydantic_ai
import pytest
from pydantic import BaseModel, ConfigDict, Field, Strict
from pydantic_ai.messages import ToolCallPart
from tool_approval.core.arguments import HIDDEN
from tool_approval.integrations.pydantic_ai import Approvals
from tool_approval.integrations.pydantic_ai.arguments import edited_arguments
from tool_approval.testing import RecordingUI

from tests.approval.argument_kinds import ALIASES, VALUES, cents, model_of
from tests.loop.scripted import call, returns, scripted
from tests.tables import table

from .agents import Log, changed, deleting

CASES = [
    *itertools.product(['only'], ALIASES, VALUES),
    *itertools.product(['one of two'], ['validation_alias', 'AliasPath into a list'], VALUES),
]


def run(model: type[BaseModel], given: dict[str, Any], edit: Any, place: str) -> tuple[Any, list[Any], Log]:
    """Run a call of a tool with a model as its only parameter, or as one of two. The approver makes the edit.

    Returns:
        What was shown, what the tool got, and the log.
    """
    got: list[Any] = []
    log, shown = Log(), []

    def answer(request: Any) -> Any:
        shown.append(dict(request.args))
        return changed(**edit(dict(request.args)))

    def only(it: Any) -> str:
        got.append((it, ''))
        return 'ok'

    def beside(it: Any, note: str = '') -> str:
        got.append((it, note))
        return 'ok'

    function: Any = only if place == 'only' else beside
    function.__annotations__['it'] = model
    made = given if place == 'only' else {'it': given, 'note': 'old'}
    agent = pydantic_ai.Agent(
        scripted([call('act', '1', **made)], 'done'),
        tools=[pydantic_ai.Tool(function, name='act')],
        capabilities=[Approvals(ui=RecordingUI(answer), log=log)],
    )
    agent.run_sync('go')
    return shown, got, log


def given_for(alias: str, value: str) -> dict[str, Any]:
    memo = 'MEMO' if alias == 'AliasGenerator' else 'memo'
    return {**ALIASES[alias].given(VALUES[value].given), memo: 'old'}


@pytest.mark.untraced
@table(('place', 'alias', 'value'), CASES)
def test_an_edit_of_another_leaf_leaves_the_value_as_it_is(place: str, alias: str, value: str):
    model = model_of(ALIASES[alias], VALUES[value])
    before = model.model_validate(given_for(alias, value))

    def edit(shown: dict[str, Any]) -> dict[str, Any]:
        memo = next(name for name in (shown if place == 'only' else shown['it']) if name.lower().strip('_') == 'memo')
        return {**shown, memo: 'new'} if place == 'only' else {**shown, 'it': {**shown['it'], memo: 'new'}}

    _, got, _ = run(model, given_for(alias, value), edit, place)

    [(it, _)] = got
    assert it.memo == 'new'
    assert it.value == before.value
    assert type(it.value) is type(before.value)


@pytest.mark.untraced
@table(('place', 'alias', 'value'), CASES)
def test_an_edited_value_is_what_the_function_gets_or_nothing_runs(place: str, alias: str, value: str):
    kind = VALUES[value]
    model = model_of(ALIASES[alias], kind)

    def edit(shown: dict[str, Any]) -> dict[str, Any]:
        own = shown if place == 'only' else shown['it']
        name = next(each for each in own if each.lower().strip('_') != 'memo' and own[each] == kind.shown)
        return {**shown, name: kind.new} if place == 'only' else {**shown, 'it': {**own, name: kind.new}}

    try:
        _, got, log = run(model, given_for(alias, value), edit, place)
    except StopIteration:
        pytest.fail('the value was not shown')

    if not got:
        assert [each['outcome'] for each in log.entries if each['event'] == 'outcome'] == ['refused']
        return
    assert kind.takes_effect
    [(it, _)] = got
    assert it.memo == 'old'
    if kind.shown != HIDDEN and isinstance(kind.new, str | int | bool) and isinstance(it.value, str | int | bool):
        assert it.value == kind.after


class Strictly(BaseModel):
    model_config = ConfigDict(strict=True)
    on: date
    tags: set[str] = Field({'a'}, validation_alias='labels')


def _dated(on: Annotated[date, Strict()], memo: str = '') -> Any:
    return on, memo


def _plain(to: str, memo: str = '') -> Any:
    return to, memo


def _nested(due: Strictly, memo: str = '') -> Any:
    return due.on, due.tags, memo


@pytest.mark.parametrize(
    ('function', 'given', 'edit', 'runs'),
    [
        pytest.param(_plain, {'to': 'bob'}, {'memo': 'new'}, ('bob', 'new'), id='beside a text'),
        pytest.param(
            _dated, {'on': '2026-01-02'}, {'memo': 'new'}, (date(2026, 1, 2), 'new'), id='beside a strict date'
        ),
        pytest.param(_dated, {'on': '2026-01-02'}, {'on': '2027-03-04'}, (date(2027, 3, 4), ''), id='of a strict date'),
        pytest.param(_dated, {'on': '2026-01-02'}, {'on': 'soon'}, None, id='that is no date'),
        pytest.param(
            _nested,
            {'due': {'on': '2026-01-02', 'labels': ['b']}},
            {'memo': 'new'},
            (date(2026, 1, 2), {'b'}, 'new'),
            id='beside a strict model',
        ),
    ],
)
def test_an_edit_of_strict_arguments_that_a_model_gave_as_json_text_runs(
    function: Any, given: dict[str, Any], edit: dict[str, Any], runs: Any
):
    ran: list[Any] = []

    @functools.wraps(function)
    def act(*args: Any, **values: Any) -> str:
        ran.append(function(*args, **values))
        return 'ok'

    agent = pydantic_ai.Agent(
        scripted([ToolCallPart('act', json.dumps(given), '1')], 'done'),
        tools=[pydantic_ai.Tool(act, name='act')],
        capabilities=[Approvals(ui=RecordingUI(lambda request: changed(**{**request.args, **edit})))],
    )
    agent.run_sync('go')

    assert ran == ([] if runs is None else [runs])


class Transfer(BaseModel):
    account: str = Field(validation_alias='iban')


SHOWN = {'t': {'account': 'EVIL'}, 'memo': 'old', 'euros': 1000}


@pytest.mark.parametrize(
    ('edit', 'runs'),
    [
        pytest.param(SHOWN, ('EVIL', 'old', 1000), id='nothing'),
        pytest.param({**SHOWN, 'memo': 'new'}, ('EVIL', 'new', 1000), id='beside a validator that is not idempotent'),
        pytest.param({**SHOWN, 't': {'account': 'SAFE'}}, ('SAFE', 'old', 1000), id='behind an alias'),
        pytest.param({**SHOWN, 'euros': 2000}, None, id='of a value that validation changes'),
        pytest.param({**SHOWN, 't': {'account': 'EVIL', 'iban': 'SAFE'}}, None, id='of a name that is not shown'),
    ],
)
def test_an_edit_runs_as_the_approver_wrote_it_or_not_at_all(edit: dict[str, Any], runs: Any):
    ran: list[Any] = []
    ui, log = RecordingUI(changed(**edit)), Log()
    agent: Any = pydantic_ai.Agent(
        scripted([call('pay', '1', t={'iban': 'EVIL'}, memo='old', euros=10)], 'done'),
        capabilities=[Approvals(ui=ui, log=log)],
    )

    @agent.tool_plain
    def pay(t: Transfer, memo: str = '', euros: cents = 0) -> str:
        ran.append((t.account, memo, euros))
        return 'paid'

    result = agent.run_sync('go')

    assert ui.requests[0].args == SHOWN
    assert ran == ([] if runs is None else [runs])
    assert [outcome for outcome, _ in log.ended()] == ['refused' if runs is None else 'executed']
    assert returns(result.all_messages())['1'][0].startswith('paid' if runs else "The approver's arguments are invalid")


def edit_in_a_handler(call_id: str, changed: dict[str, Any], shown: dict[str, Any]) -> Any:
    """What `edited_arguments` makes of an edit of a call that another capability has changed, or that is unknown."""
    made: list[Any] = []

    async def handler(ctx: Any, requests: Any) -> Any:
        try:
            made.append(edited_arguments(ctx, ToolCallPart('delete', {}, call_id), changed, shown))
        except ValueError as error:
            made.append(str(error))
        return requests.build_results(approve_all=True)

    agent, _ = deleting()
    agent.run_sync('go', deferred_tool_handler=handler)
    return made[0]


@pytest.mark.parametrize('call_id', ['1', 'unknown'])
def test_an_edit_of_arguments_that_are_not_the_models_replaces_all_of_them(call_id: str):
    shown = {'path': 'b', 'force': False}

    assert edit_in_a_handler(call_id, {**shown, 'path': 'c'}, shown) == {'path': 'c', 'force': False}
    assert 'would also set force' in edit_in_a_handler(call_id, {'path': 'c'}, {'path': 'b'})

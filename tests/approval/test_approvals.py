"""The one object that has rules, memory, UI, log and key, in code that uses no framework."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tool_approval.storage import FileApprovalStore
from tool_approval.storage.private_file import default_path
from tool_approval.testing import RecordingUI, ScriptedUI
from tool_approval.ui.terminal import TerminalUI

from tool_approval import (
    ApprovalBlocked,
    ApprovalConfigError,
    ApprovalController,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalPolicy,
    Approvals,
)

from .parts import ListSink


def delete(path: str) -> str:
    return f'deleted {path}'


def run(approvals: Approvals, path: str = 'a') -> Any:
    return asyncio.run(approvals.execute(delete, {'path': path}))


BLOCKS = {'delete': {'approval': 'blocked'}}


def settings(folder: Path) -> Path:
    pytest.importorskip('yaml')
    path = folder / 'approvals.yaml'
    path.write_text('mode: strict\ntools:\n  delete:\n    approval: blocked\n')
    return path


@pytest.mark.parametrize('kind', ['mapping', 'policy', 'path', 'text', 'controller'])
def test_rules_are_given_in_every_form(kind: str, tmp_path: Path):
    path = settings(tmp_path)
    rules: Any = {
        'mapping': BLOCKS,
        'policy': ApprovalPolicy(BLOCKS),
        'path': path,
        'text': str(path),
        'controller': ApprovalController(policy=BLOCKS),
    }[kind]

    with pytest.raises(ApprovalBlocked):
        run(Approvals(rules))


def test_mode_of_the_settings_file_holds_unless_another_is_given(tmp_path: Path):
    path = settings(tmp_path)

    assert Approvals(path).controller.mode == 'strict'
    assert Approvals(path, mode='interactive').controller.mode == 'interactive'


def test_a_tool_without_rule_and_check_needs_approval_unless_code_says_otherwise():
    ui = ScriptedUI([True, 'no'])

    assert run(Approvals(ui=ui)) == 'deleted a'
    with pytest.raises(ApprovalDenied, match='no'):
        run(Approvals(ui=ui))
    assert run(Approvals(default='none')) == 'deleted a'


def test_always_approvals_of_a_project_are_remembered_by_another_object(tmp_path: Path, own_home: Path):
    run(Approvals(ui=ScriptedUI(['a']), remember=tmp_path))

    assert run(Approvals(remember=str(tmp_path))) == 'deleted a'
    (other := tmp_path / 'other').mkdir()
    with pytest.raises(ApprovalDenied):
        run(Approvals(remember=other))


def test_log_is_a_file_with_the_digest_of_the_settings_or_a_sink(tmp_path: Path, own_home: Path):
    log, sink = tmp_path / 'audit.jsonl', ListSink()
    with pytest.raises(ApprovalBlocked):
        run(Approvals(settings(tmp_path), log=log))
    run(Approvals(ui=ScriptedUI([True]), log=sink))

    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert (first['event'], second['event']) == ('settings', 'blocked')
    assert first['settings_digest'] == second['settings_digest']
    assert [each['event'] for each in sink.entries] == ['decision', 'outcome']


@pytest.mark.parametrize(
    ('audit', 'given', 'events'),
    [
        ('', {}, ['unasked', 'outcome']),
        ('audit: {unasked: false}\n', {}, []),
        ('audit: {unasked: false}\n', {'log_unasked': True}, ['unasked', 'outcome']),
        ('', {'log_unasked': False}, []),
    ],
)
def test_settings_say_whether_calls_that_run_unasked_are_logged_unless_the_code_does(
    tmp_path: Path, audit: str, given: Any, events: list[str]
):
    path, sink = settings(tmp_path), ListSink()
    path.write_text(f'tools:\n  delete:\n    approval: none\n{audit}')

    assert run(Approvals(path, log=sink, **given)) == 'deleted a'

    assert [each['event'] for each in sink.all] == ['settings', *events]


def test_a_terminal_shows_the_memory_of_the_approvals_that_ask_unless_it_has_one():
    own, memory, other = ApprovalMemory(), ApprovalMemory(), ApprovalMemory()
    with_own, without = TerminalUI(memory=own), TerminalUI()

    used = [Approvals(ui=ui, remember=each).controller.ui for ui in (with_own, without) for each in (memory, other)]

    assert [getattr(ui, '_memory', None) for ui in used] == [own, own, memory, other]


def test_a_ui_that_adopts_gets_the_memory_and_the_presenters():
    class Adopting(RecordingUI):
        def adopted(self, *given: Any) -> 'Adopting':
            self.given = given
            return self

    ui, memory, presenters = Adopting(True), ApprovalMemory(), {'delete': lambda request: None}

    approvals = Approvals(ui=ui, remember=memory, presenters=presenters)  # pyright: ignore[reportArgumentType]

    assert ui.given == (memory, presenters)
    assert approvals.controller.ui is ui


@pytest.mark.parametrize(
    ('arguments', 'error', 'text'),
    [
        ({'rules': 7}, TypeError, 'not int'),
        ({'rules': 'tools:\n  delete: {}'}, ApprovalConfigError, r'ApprovalPolicy\.from_yaml'),
        ({'rules': 'missing.yaml'}, ApprovalConfigError, 'missing.yaml'),
        ({'rules': ApprovalController(), 'timeout': 3, 'mode': 'strict'}, TypeError, 'its own `mode` and `timeout`'),
        ({'remmember': '.', 'policy': {}}, TypeError, 'has no `policy` and no `remmember`'),
        ({'remember': 7}, TypeError, '`remember` must be a folder or an `ApprovalMemory`, not int'),
        ({'remember': 'missing'}, TypeError, "'missing' is not a folder"),
        ({'log': 7}, TypeError, 'not int'),
        ({'ui': 7}, TypeError, '`ui` must be an object'),
        ({'default': 'ask'}, ValueError, '`default`'),
        ({'mode': 'ask'}, ValueError, 'unknown mode'),
        ({'timeout': 0}, ValueError, 'positive'),
    ],
)
def test_parts_of_a_wrong_type_are_refused(
    arguments: dict[str, Any], error: type[Exception], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(error, match=text):
        Approvals(**arguments)


def test_a_test_has_its_own_ui_memory_and_log_and_nothing_of_the_users(tmp_path: Path, own_home: Path):
    real, sink = ScriptedUI(['a']), ListSink()
    approvals = Approvals(ui=real, remember=tmp_path, log=sink)
    run(approvals)
    before = len(sink.entries)

    with approvals.testing(ScriptedUI(['s'])) as log:
        run(approvals, 'a')
        run(approvals, 'a')
        assert [each['event'] for each in log] == ['question', 'decision', 'outcome', 'decision', 'outcome']
        assert len(approvals.memory.list_approvals()) == 1

    assert len(sink.entries) == before
    assert [each.label for each in FileApprovalStore(tmp_path, default_path()).list_all()] == ["delete(path='a')"]
    assert run(approvals, 'a') == 'deleted a', 'the approval of the user holds again'


def test_a_test_concerns_one_object_and_may_be_nested():
    one, other = Approvals(), Approvals(ui=ScriptedUI([True]))

    with one.testing(ScriptedUI([True, True])):
        run(one)
        run(other)
        with one.testing(ScriptedUI(['no'])), pytest.raises(ApprovalDenied):
            run(one)
        run(one)


def test_a_test_executes_without_the_users_ledger():
    ledger: Any = object()
    approvals = Approvals(ledger=ledger)

    with approvals.testing(ScriptedUI([True])):
        assert run(approvals) == 'deleted a'
    assert approvals.ledger is ledger


def test_a_run_that_outlives_its_test_is_denied():
    approvals = Approvals(ui=RecordingUI(True))

    async def main() -> Any:
        is_over = asyncio.Event()

        async def outlive() -> Any:
            await is_over.wait()
            return await approvals.execute(delete, {'path': 'a'})

        with approvals.testing(RecordingUI(True)):
            task = asyncio.create_task(outlive())
            await asyncio.sleep(0)
        is_over.set()
        return await task

    with pytest.raises(ApprovalDenied, match='The test of this run has ended'):
        asyncio.run(main())


def test_a_callable_without_a_name_runs_only_under_a_given_name():
    approvals, delete_a = Approvals(default='none'), partial(delete, 'a')

    with pytest.raises(TypeError, match='a partial has no name; give `name=`'):
        asyncio.run(approvals.execute(delete_a, {}))
    assert asyncio.run(approvals.execute(delete_a, {}, name='delete_a')) == 'deleted a'

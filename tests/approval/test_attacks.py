"""Attacks on approvals: no case ends with a call executed that no approver has approved."""

import asyncio
import contextlib
import json
import logging
import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.core.asking import PROCESS_LOCK, ask
from tool_approval.storage import FileApprovalStore, file_store
from tool_approval.testing import RecordingUI, ScriptedUI, approve_all, deny_all

from tests.tables import table
from tool_approval import (
    ApprovalBlocked,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalPresentation,
    ApprovalRefused,
    ApprovalRequest,
    ApprovalResult,
    AuditError,
    LineageEntry,
    RememberedApproval,
    RememberOption,
    StoreError,
    canonical_json,
    execute_tool,
    requires_approval,
    simple_approval_request,
)

from .parts import KEY, NOON, ListSink, decide, finish, in_threads, logged, request_for, run_tool, start_python
from .spoilt_files import SPOILT

pytestmark = pytest.mark.anyio

MODES = ('interactive', 'approve_all', 'strict')
NESTED = {'target': {'path': 'a'}, 'flags': ['-r']}


def evil(args):
    args['target']['path'] = '/etc'
    args['flags'].append('-f')


def deleting():
    ran = []

    @requires_approval()
    def delete(target, flags):
        ran.append(json.loads(json.dumps({'target': target, 'flags': flags})))

    return delete, ran


# --- arguments that change between the question and the execution ---


class MutatingUI(RecordingUI):
    """Changes everything it is shown, before it answers."""

    def choose(self, request, *, mode):
        evil(request.args)
        evil(request.payload)
        request.metadata['caller'] = 'root'
        for option in request.remember_options:
            option.payload['folder'] = '/'
        return super().choose(request, mode=mode)


def test_a_ui_cannot_change_the_arguments_it_asks_about():
    delete, ran = deleting()
    sink = ListSink()
    controller = ApprovalController(ui=MutatingUI('s'), audit=sink)

    run_tool(delete, NESTED, controller)

    assert ran == [{'target': {'path': 'a'}, 'flags': ['-r']}]
    assert {entry['digest'] for entry in sink.entries} == {controller.digest('delete', ran[0])}
    assert sink.entries[0]['payload'] == ran[0]


def test_ui_cannot_change_the_remembered_option():
    option = RememberOption(kind='folder', label='notes/', payload={'folder': 'notes'})
    changed = RememberOption(kind='folder', label='notes/', payload={'folder': '/'})
    for answer in ('s', ApprovalDecision(approved=True, remember='session', remember_option='folder')):
        controller = ApprovalController(ui=MutatingUI(answer))
        asked = ApprovalRequest(tool_name='delete', args=NESTED, remember_options=(option,))

        decide(controller, asked)

        assert controller.memory.lookup(asked) is not None
        mutated = json.loads(json.dumps(NESTED))
        evil(mutated)
        other = ApprovalRequest(tool_name='delete', args=mutated, remember_options=(changed,))
        assert controller.memory.lookup(other) is None
        assert controller.memory.lookup(asked.model_copy(update={'metadata': {'caller': 'root'}})) is None


def test_a_ui_cannot_change_its_decision_after_it_gave_it():
    delete, ran = deleting()
    theirs = json.loads(json.dumps(NESTED))
    controller = ApprovalController(ui=RecordingUI(ApprovalDecision(approved=True, override_args=theirs)))

    class Later(ListSink):
        def record(self, entry):
            super().record(entry)
            if entry['event'] == 'decision':
                evil(theirs)

    controller.audit = Later()

    run_tool(delete, {'target': {'path': 'x'}, 'flags': []}, controller)

    assert ran == [{'target': {'path': 'a'}, 'flags': ['-r']}]
    assert len({entry['digest'] for entry in controller.audit.entries}) == 1


def test_presenter_cannot_change_the_arguments_it_presents():
    delete, ran = deleting()
    sink, ui = ListSink(), approve_all()

    def present(request):
        evil(request.args)
        evil(request.payload)
        return ApprovalPresentation(type='text', content='harmless')

    controller = ApprovalController(ui=ui, audit=sink, presenters={'delete': present})

    run_tool(delete, NESTED, controller)

    assert ran == [NESTED]
    assert [request.args for request in ui.requests] == [NESTED]
    assert {entry['digest'] for entry in sink.entries} == {controller.digest('delete', NESTED)}


@pytest.mark.parametrize('is_top_level', [True, False])
def test_a_caller_cannot_change_arguments_after_they_were_approved(is_top_level):
    delete, ran = deleting()
    sink = ListSink()
    callers = json.loads(json.dumps(NESTED))

    def approves_while_the_caller_changes_it(request):
        if is_top_level:
            callers['target'] = {'path': '/etc'}
        else:
            evil(callers)
        return True

    controller = ApprovalController(ui=RecordingUI(approves_while_the_caller_changes_it), audit=sink)

    if is_top_level:
        run_tool(delete, callers, controller)
        assert ran == [NESTED]
    else:
        with pytest.raises(ApprovalDenied, match='changed after it was approved'):
            run_tool(delete, callers, controller)
        assert ran == []
        assert sink.outcomes() == ['refused']
        assert sink.decisions()[0]['digest'] == controller.digest('delete', NESTED)


def test_a_caller_cannot_change_a_request_that_is_open():
    args = json.loads(json.dumps(NESTED))
    sink = ListSink()

    def approves_while_the_caller_changes_it(request):
        evil(args)
        return 's'

    controller = ApprovalController(ui=RecordingUI(approves_while_the_caller_changes_it), audit=sink)

    decide(controller, ApprovalRequest(tool_name='delete', args=args))

    assert sink.entries[0]['digest'] == controller.digest('delete', NESTED)
    assert sink.entries[0]['payload'] == NESTED
    assert controller.memory.lookup(ApprovalRequest(tool_name='delete', args=args)) is None


def test_the_tools_own_check_cannot_change_the_arguments_it_judges():
    ran = []

    class Tool:
        __name__ = 'tool'

        def check_approval(self, ctx):
            request = simple_approval_request(ctx.tool_name, json.loads(json.dumps(dict(ctx.args))))
            evil(ctx.args)
            return request

        def __call__(self, **args):
            ran.append(args)

    ui = approve_all()

    with pytest.raises(ApprovalDenied, match='changed after it was approved'):
        run_tool(Tool(), NESTED, ApprovalController(ui=ui))

    assert ran == []
    assert NESTED == {'target': {'path': 'a'}, 'flags': ['-r']}


# --- approvals that are used for other calls than they were given for ---


def test_a_decision_cannot_be_replayed_for_other_arguments():
    controller = ApprovalController(ui=RecordingUI('s'))
    decide(controller, request_for('a'))
    controller.ui = deny_all()

    assert decide(controller, request_for('a')).approved
    assert not decide(controller, request_for('b')).approved
    assert not decide(controller, request_for('a', args={'path': 'a', 'force': True})).approved
    bound = controller.digest('delete', {'path': 'a'})
    assert not controller.is_bound(bound, 'delete', {'path': 'b'})


def test_an_answer_to_one_question_of_a_group_is_not_that_to_another():
    class Swapping(RecordingUI):
        def choose_group(self, requests, *, mode):
            return [ApprovalDecision(approved=request.args['path'] == 'a') for request in reversed(requests)][::-1]

    controller = ApprovalController(ui=Swapping())
    requests = [request_for(path, group_id='g') for path in ('b', 'a')]

    decisions = asyncio.run(controller.request_approvals(requests))

    assert [decision.approved for decision in decisions] == [False, True]


def child_of(parent, *, run_id='run 2', caller: str | None = 'helper', session_id='chat'):
    """A request of an agent that runs inside a tool of `parent`."""
    lineage = (LineageEntry(agent_name=parent, run_id='run 1', tool_name='research', tool_call_id='call 1'),)
    return request_for(session_id=session_id, run_id=run_id, lineage=lineage, metadata={'caller': caller})


def approved_from(memory, request):
    return decide(ApprovalController(memory=memory), request).approved


def of_run(number, caller, session_id='chat'):
    return request_for(session_id=session_id, run_id=f'run {number}', metadata={'caller': caller})


UNNAMED = request_for(session_id='chat', run_id='run 1')


@table(
    ('why', 'approved', 'asked'),
    [
        ('a child does not use what was approved for its parent', of_run(1, 'root'), child_of('root')),
        ('a child with the name of its parent is another agent', of_run(1, 'root'), child_of('root', caller='root')),
        ('a parent does not use what was approved for its child', child_of('root'), of_run(1, 'root')),
        ('an outermost agent with the name of the child is another', child_of('root'), of_run(2, 'helper')),
        ('the child of another parent is another agent', child_of('root'), child_of('another root')),
        ('conversations of two people share nothing', of_run(1, 'bot', 'ada'), of_run(1, 'bot', 'bob')),
        ('a run without a session is no conversation', of_run(1, 'bot', 'ada'), of_run(1, 'bot', None)),
        ('unnamed agents share nothing', UNNAMED, request_for(session_id='chat', run_id='run 2')),
        ('an empty name is no name', UNNAMED, of_run(2, '')),
        ('the id of a run is no name', UNNAMED, of_run(2, 'run 1')),
        ('unnamed children share nothing', child_of(None, caller=None), child_of(None, caller=None, run_id='run 3')),
        (
            'a tool of another toolset is another tool',
            request_for(metadata={'toolset_id': 'notes'}),
            request_for(metadata={'toolset_id': 'disk'}),
        ),
    ],
)
def test_approval_is_not_used_by_another_agent_conversation_or_toolset(why, approved, asked):
    memory = ApprovalMemory()
    decide(ApprovalController(ui=RecordingUI('s'), memory=memory), approved)

    assert approved_from(memory, approved), why
    assert not approved_from(memory, asked), why


def test_a_child_does_not_use_its_parents_approval_by_way_of_execute_tool():
    delete, ran = deleting()
    ui = ScriptedUI(['s', 'n'])
    controller = ApprovalController(ui=ui)
    parent = {'session_id': 'chat', 'caller': 'root', 'run_id': 'run 1'}
    lineage = [{'agent_name': 'root', 'run_id': 'run 1', 'tool_name': 'research', 'tool_call_id': 'call 1'}]

    run_tool(delete, NESTED, controller, context_metadata=parent)
    run_tool(delete, NESTED, controller, context_metadata=parent)
    with pytest.raises(ApprovalDenied):
        run_tool(delete, NESTED, controller, context_metadata={**parent, 'lineage': lineage})

    ui.assert_done()
    assert len(ran) == 2


def test_arguments_cannot_offer_to_be_remembered_more_widely():
    memory = ApprovalMemory()
    decision = ApprovalDecision(approved=True, remember='session', remember_option='folder')
    request = ApprovalRequest(
        tool_name='delete',
        args={'path': 'a', 'remember_options': [{'kind': 'folder', 'label': 'all', 'payload': {}}]},
        metadata={'remember_options': [{'kind': 'folder', 'label': 'all', 'payload': {}}]},
    )

    denied = decide(ApprovalController(ui=RecordingUI(decision), memory=memory), request)

    assert not denied.approved
    assert len(memory) == 0


def test_a_revoked_approver_does_not_approve_from_memory():
    allowed = {'ada'}
    memory = ApprovalMemory(is_allowed=lambda approver: approver in allowed)
    answer = ApprovalDecision(approved=True, remember='session', decided_by=('ada',))
    decide(ApprovalController(ui=RecordingUI(answer), memory=memory), request_for())
    assert approved_from(memory, request_for())

    allowed.remove('ada')

    assert not approved_from(memory, request_for())


# --- blocks ---


def test_changed_arguments_do_not_reach_what_the_tool_blocks():
    ran, sink = [], ListSink()

    class Tool:
        __name__ = 'tool'

        def check_approval(self, ctx):
            if ctx.args['path'].startswith('/etc'):
                raise PermissionError('not in /etc')
            return simple_approval_request(ctx.tool_name, ctx.args)

        def __call__(self, **args):
            ran.append(args)

    ui = RecordingUI(ApprovalDecision(approved=True, override_args={'path': '/etc/passwd'}))

    with pytest.raises(ApprovalBlocked, match='not in /etc'):
        run_tool(Tool(), {'path': 'a'}, ApprovalController(ui=ui, audit=sink))

    assert ran == []
    assert sink.outcomes() == ['refused']


@pytest.mark.parametrize('mode', MODES)
def test_what_metadata_blocks_is_blocked_whatever_is_remembered(mode):
    memory = ApprovalMemory()
    memory.store(request_for(), ApprovalDecision(approved=True, remember='session'))
    blocked = request_for(metadata={'approval_policy': 'blocked', 'approval_reason': 'not here'})

    decision = decide(ApprovalController(mode, ui=approve_all(), memory=memory), blocked)

    assert (decision.approved, decision.note) == (False, 'not here')


PATHS = st.sampled_from(['a', 'b', 'c'])
ANSWERS = st.builds(
    ApprovalDecision,
    approved=st.booleans(),
    remember=st.sampled_from(['none', 'session', 'always']),
    override_args=st.none() | st.fixed_dictionaries({'path': PATHS}),
)
RULES = st.dictionaries(
    st.sampled_from(['delete', 'del*', '*', 'd?lete', 'other']),
    st.fixed_dictionaries({'approval': st.sampled_from(['required', 'none', 'blocked', None])}),
    max_size=3,
)
CALLS = st.lists(st.tuples(st.sampled_from(['delete', 'other']), PATHS, st.booleans(), ANSWERS), max_size=8)


class MemoryStore:
    """Keeps what holds always in memory."""

    key = KEY

    def __init__(self):
        self.scope = {'project': 'p'}
        self.kept = {}

    def get(self, approval_id):
        return self.kept.get(approval_id)

    def put(self, approval):
        self.kept[approval.id] = approval

    def change(self, approval_id, change):
        changed = change(self.kept[approval_id]) if approval_id in self.kept else None
        if changed is not None:
            self.put(changed)
        return changed

    def remove(self, approval_id):
        return self.kept.pop(approval_id, None) is not None

    def list_all(self):
        return list(self.kept.values())


@given(
    mode=st.sampled_from(MODES),
    rules=RULES,
    default=st.sampled_from(['required', 'none']),
    own_blocks=st.sets(PATHS),
    remembered=st.lists(st.tuples(st.sampled_from(['delete', 'other']), PATHS)),
    calls=CALLS,
)
def test_a_blocked_call_is_never_executed_and_what_executes_is_what_was_approved(
    mode, rules, default, own_blocks, remembered, calls
):
    executed, answers, sink = [], [], ListSink()
    memory = ApprovalMemory(MemoryStore())
    for name, path in remembered:
        memory.store(request_for(path, tool_name=name), ApprovalDecision(approved=True, remember='always'))
        memory.store(request_for(path, tool_name=name), ApprovalDecision(approved=True, remember='session'))
    ui = RecordingUI(lambda request: answers[-1])
    controller = ApprovalController(
        mode, policy=ApprovalPolicy(rules, default=default), ui=ui, memory=memory, audit=sink, now=lambda: NOON
    )
    patterns = {'delete': ('delete', 'del*', '*', 'd?lete'), 'other': ('other', '*')}

    def is_blocked(name, path, metadata):
        by_rule = any(rules.get(pattern, {}).get('approval') == 'blocked' for pattern in patterns[name])
        return by_rule or path in own_blocks or metadata.get('approval_policy') == 'blocked'

    class Tool:
        def __init__(self, name):
            self.name = name

        def check_approval(self, ctx):
            if ctx.args['path'] in own_blocks:
                raise PermissionError('never')
            return simple_approval_request(ctx.tool_name, ctx.args)

        def __call__(self, path):
            executed.append((self.name, {'path': path}))

    for name, path, is_marked, answer in calls:
        answers.append(answer)
        metadata = {'approval_policy': 'blocked'} if is_marked else {}
        before, written = len(executed), len(sink.entries)
        with contextlib.suppress(ApprovalRefused):
            asyncio.run(execute_tool(Tool(name), name, {'path': path}, controller, metadata))

        if is_blocked(name, path, metadata):
            assert len(executed) == before
        for name_run, args in executed[before:]:
            assert not is_blocked(name_run, args['path'], metadata)
            decisions = [entry for entry in sink.entries[written:] if entry['event'] == 'decision']
            if decisions:
                [decision] = decisions
                assert controller.is_bound(decision['digest'], name_run, args)
                assert sink.entries[-1]['digest'] == decision['digest']
        if any(entry['event'] == 'decision' and not entry['approved'] for entry in sink.entries[written:]):
            assert len(executed) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    args=st.dictionaries(st.text(min_size=1), JSON, max_size=3),
    override=st.none() | st.dictionaries(st.text(min_size=1), JSON, max_size=3),
)
def test_what_executes_has_the_digest_that_was_approved(args, override):
    executed, sink = [], ListSink()

    class Tool:
        def check_approval(self, ctx):
            return simple_approval_request(ctx.tool_name, ctx.args)

        def __call__(self, **given_args):
            executed.append(given_args)

    controller = ApprovalController(
        ui=RecordingUI(ApprovalDecision(approved=True, override_args=override)), audit=sink, key=KEY
    )

    asyncio.run(execute_tool(Tool(), 'tool', args, controller))

    [ran] = executed
    assert canonical_json(ran) == canonical_json(args if override is None else override)
    assert [entry['digest'] for entry in sink.entries] == [controller.digest('tool', ran)] * 2


@given(
    own=st.sampled_from(['blocked', 'pre_approved', 'needs_approval']),
    rule=st.sampled_from(['required', 'none', 'blocked', None]),
    mode=st.sampled_from(MODES),
    answer=st.booleans(),
)
def test_block_rule_mode_and_answer_decide_in_this_order(own, rule, mode, answer):
    ran = []

    class Tool:
        def needs_approval(self, name, args):
            if own == 'blocked':
                return ApprovalResult.blocked('never')
            return ApprovalResult(status=own)

        def __call__(self):
            ran.append(True)

    controller = ApprovalController(mode, policy={'tool': {'approval': rule}}, ui=RecordingUI(answer))
    is_free = rule == 'none' or (rule is None and own == 'pre_approved')
    may_run = 'blocked' not in (own, rule) and (is_free or mode == 'approve_all' or (mode == 'interactive' and answer))

    with contextlib.suppress(ApprovalRefused):
        asyncio.run(execute_tool(Tool(), 'tool', {}, controller))

    assert bool(ran) is may_run


# --- the file that remembers ---


def add_unknown_field(path):
    contents = json.loads(path.read_text())
    contents['approvals'][0]['approves_everything'] = True
    path.write_text(json.dumps(contents))


def change_version(path):
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))


@pytest.mark.parametrize(
    ('spoil', 'reason'),
    [
        *SPOILT,
        pytest.param(lambda path: path.write_text('{"version": 1, "key": '), 'the file is corrupt', id='no JSON'),
        pytest.param(add_unknown_field, 'the file is corrupt', id='unknown field'),
        pytest.param(change_version, 'the file is corrupt', id='another version'),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-20]), 'the file is corrupt', id='cut'),
        pytest.param(lambda path: path.write_bytes(b''), 'the file is corrupt', id='empty'),
        pytest.param(
            lambda path: os.truncate(path, file_store.MAX_BYTES + 1), 'larger than 16777216 bytes', id='too large'
        ),
    ],
)
def test_spoilt_memory_file_approves_nothing_and_the_error_gives_the_reason(tmp_path, spoil, reason):
    delete, ran = deleting()
    path = tmp_path / 'state' / 'approvals.json'
    store = FileApprovalStore(tmp_path / 'project', path)
    controller = ApprovalController(ui=RecordingUI('a'), memory=ApprovalMemory(store))
    run_tool(delete, NESTED, controller)
    controller.ui = approve_all()

    spoil(path)

    with pytest.raises(StoreError, match=f'{reason}.*approves nothing') as raised:
        run_tool(delete, NESTED, controller)
    assert str(path) in str(raised.value)
    with pytest.raises(StoreError, match=reason):
        FileApprovalStore(tmp_path / 'project', path)
    with pytest.raises(StoreError, match=reason):
        store.put(RememberedApproval(id='a' * 64, tool_name='t', kind='exact', label='x', approved_at=NOON))
    assert len(ran) == 1


def test_a_memory_file_inside_of_the_project_is_refused(tmp_path):
    path = tmp_path / 'project' / '.approvals.json'
    path.parent.mkdir()
    path.write_text('{"version": 1, "key": "' + '0' * 64 + '", "approvals": []}')
    path.chmod(0o600)

    with pytest.raises(StoreError, match='the file is inside the project'):
        FileApprovalStore(tmp_path / 'project', path)


@pytest.mark.parametrize('lock', ['symlink', 'pipe', 'readable'])
def test_a_spoilt_lock_is_refused_and_nothing_is_written(tmp_path, lock):
    path = tmp_path / 'state' / 'approvals.json'
    FileApprovalStore(tmp_path / 'project', path)
    lock_file = path.with_name('approvals.json.lock')
    before = path.read_bytes()
    lock_file.unlink()
    victim = tmp_path / 'victim'
    victim.write_text('precious')
    if lock == 'symlink':
        lock_file.symlink_to(victim)
    elif lock == 'pipe':
        os.mkfifo(lock_file, 0o600)
    else:
        lock_file.touch(0o600)
        lock_file.chmod(0o644)

    with pytest.raises(StoreError):
        FileApprovalStore(tmp_path / 'project', path)

    assert path.read_bytes() == before
    assert victim.read_text() == 'precious'


def test_an_approval_cannot_be_written_into_the_file_without_its_key(tmp_path):
    path = tmp_path / 'state' / 'approvals.json'
    store = FileApprovalStore(tmp_path / 'project', path)
    theirs = FileApprovalStore(tmp_path / 'project', tmp_path / 'theirs' / 'approvals.json')
    controller = ApprovalController(ui=RecordingUI('a'), memory=ApprovalMemory(theirs))
    decide(controller, request_for())
    contents = json.loads(path.read_text())
    contents['approvals'] = json.loads((tmp_path / 'theirs' / 'approvals.json').read_text())['approvals']

    path.write_text(json.dumps(contents))

    assert len(store.list_all()) == 1
    assert not decide(ApprovalController(memory=ApprovalMemory(store)), request_for()).approved


# --- a process that dies ---

CRASHES = """
import asyncio, os, signal, sys
from pathlib import Path
from tool_approval import ApprovalController, execute_tool, requires_approval
from tool_approval.audit import JsonlAuditSink
from tool_approval.testing import approve_all

folder, how = Path(sys.argv[1]), sys.argv[2]

def die():
    if how == 'exit':
        os._exit(7)
    if how == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)

class DiesAfterTheLine(JsonlAuditSink):
    def record(self, entry):
        super().record(entry)
        if entry['event'] == 'decision':
            die()

@requires_approval()
def delete(path):
    with open(folder / 'ran', 'a') as file:
        file.write(path)

sink = DiesAfterTheLine(folder / 'audit.jsonl', key=b'k' * 32)
controller = ApprovalController(ui=approve_all(), audit=sink, key=b'k' * 32)
asyncio.run(execute_tool(delete, 'delete', {'path': 'a'}, controller))
"""


@pytest.mark.parametrize(('how', 'code'), [('exit', 7), ('kill', -9)])
def test_a_crash_between_the_line_and_the_execution_leaves_an_unfinished_approval(tmp_path, how, code):
    for _ in range(2):
        [(ended, _, errors)] = finish(start_python(CRASHES, tmp_path, how))
        assert (ended, errors) == (code, '')
    finding = verify(tmp_path / 'audit.jsonl', key=KEY)
    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (True, 4, (2, 4))
    assert not (tmp_path / 'ran').exists()

    [(ended, _, errors)] = finish(start_python(CRASHES, tmp_path, 'not at all'))

    assert (ended, errors) == (0, '')
    assert (tmp_path / 'ran').read_text() == 'a'
    finding = verify(tmp_path / 'audit.jsonl', key=KEY)
    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (True, 7, (2, 4))


FILLS = """
import asyncio, resource, sys
from pathlib import Path
from tool_approval import ApprovalController, ApprovalDenied, execute_tool, requires_approval
from tool_approval.audit import JsonlAuditSink
from tool_approval.testing import approve_all

folder = Path(sys.argv[1])
ran = []

@requires_approval()
def delete(path):
    ran.append(path)

sink = JsonlAuditSink(folder / 'audit.jsonl', key=b'k' * 32)
controller = ApprovalController(ui=approve_all(), audit=sink)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for number in range(20):
    try:
        asyncio.run(execute_tool(delete, 'delete', {'path': str(number)}, controller))
    except ApprovalDenied as error:
        print(len(ran), error.reason)
        break
"""


def test_a_full_disk_denies_the_call_and_leaves_the_log_intact(tmp_path):
    [(code, output, errors)] = finish(start_python(FILLS, tmp_path))

    ran, _, reason = output.strip().partition(' ')
    assert (code, reason) == (0, 'The decision could not be written to the audit log, so the call was denied.')
    assert "A call of 'delete' was denied" in errors
    finding = verify(tmp_path / 'audit.jsonl', key=KEY)
    assert finding.is_intact
    lines = [json.loads(line) for line in (tmp_path / 'audit.jsonl').read_text().splitlines()]
    assert sum(line['event'] == 'decision' for line in lines) == int(ran) > 0


# --- secrets ---

CANARY = 'correct-horse-battery'


def test_a_secret_is_in_no_file_and_no_log_record(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    sink = JsonlAuditSink(tmp_path / 'log' / 'audit.jsonl', key=KEY)
    store = FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json')
    error = ValueError(CANARY)

    @requires_approval(exclude_keys={'word'})
    def login(user, word):
        raise error

    class BadPolicy:
        __name__ = 'login'

        def check_approval(self, ctx):
            raise error

        def __call__(self, **args):
            raise AssertionError

    def fails(request):
        raise error

    async def fails_later(request, *, mode):
        raise error

    class FailingLater:
        choose = staticmethod(fails_later)

    def controller(ui, **options):
        return ApprovalController(ui=ui, audit=sink, memory=ApprovalMemory(store), **options)

    args = {'user': 'ada', 'word': CANARY}
    denial = ApprovalDecision(approved=False, note=f'not with {CANARY}')
    changed = ApprovalDecision(approved=True, note=CANARY, override_args={'user': 'bob', 'word': CANARY[::-1]})
    runs = [
        (login, controller(RecordingUI('a'))),
        (login, controller(deny_all())),
        (login, controller(RecordingUI(denial))),
        (login, controller(RecordingUI(changed))),
        (login, controller(RecordingUI(error))),
        (login, controller(FailingLater())),
        (login, controller(RecordingUI(CANARY))),
        (login, controller(approve_all(), presenters={'login': fails})),
        (login, controller(approve_all(), policy={'login': {'approval': 'blocked'}})),
        (BadPolicy(), controller(approve_all())),
    ]

    for number, (function, each) in enumerate(runs):
        with pytest.raises((ValueError, ApprovalRefused)):
            run_tool(function, {**args, 'user': f'ada {number}'} if number else args, each)

    sink.close()
    files = [path for path in tmp_path.rglob('*') if path.is_file()]
    assert {path.name for path in files} == {'audit.jsonl', 'approvals.json', 'approvals.json.lock'}
    texts = [path.read_text() for path in files]
    assert sum('login' in text for text in texts) == 2
    assert len(texts[[path.name for path in files].index('audit.jsonl')].splitlines()) == 19
    logged = [record.getMessage() + str(record.exc_info) + str(record.exc_text) for record in caplog.records]
    assert any('failed with ValueError' in message for message in logged)
    for text in [*texts, *logged]:
        assert CANARY not in text
        assert CANARY[::-1] not in text


def test_a_token_in_a_note_or_an_argument_is_in_no_file(tmp_path):
    token = 'ghp_' + 'a1B2' * 9
    sink = JsonlAuditSink(tmp_path / 'audit.jsonl', key=KEY)
    decision = ApprovalDecision(approved=True, note=f'use {token}', remember='session')

    decide(ApprovalController(ui=RecordingUI(decision), audit=sink), request_for(f'curl -H {token}'))

    sink.close()
    text = (tmp_path / 'audit.jsonl').read_text()
    assert token not in text
    assert text.count('[redacted]') == 3


def test_a_sinks_own_error_is_not_logged_with_what_it_quotes(caplog):
    class Quoting:
        def record(self, entry):
            if entry['event'] == 'outcome':
                raise ValueError(CANARY)

    delete, ran = deleting()

    run_tool(delete, NESTED, ApprovalController('approve_all', audit=Quoting()))

    assert ran == [NESTED]
    assert logged(caplog) == ["The outcome of a call of 'delete' was not written: ValueError"]


# --- one keyboard for all controllers ---


def test_two_controllers_in_two_threads_never_have_two_questions_open():
    lock, begin = threading.Lock(), threading.Barrier(2)
    state = {'open': 0, 'most': 0, 'asked': 0}

    class Keyboard:
        one_at_a_time = True

        def choose(self, request, *, mode):
            with lock:
                state['open'] += 1
                state['asked'] += 1
                state['most'] = max(state['most'], state['open'])
            for _ in range(50):
                time.sleep(0)  # lets the other threads run, if they may
            with lock:
                state['open'] -= 1
            return ApprovalDecision(approved=True)

    def work():
        begin.wait(60)
        controller = ApprovalController(ui=Keyboard())
        requests = [request_for(number) for number in range(5)]

        async def two_runs():
            await asyncio.gather(controller.request_approvals(requests), controller.request_approvals(requests))

        asyncio.run(two_runs())

    in_threads(work, work)

    assert state == {'open': 0, 'most': 1, 'asked': 20}


async def test_answer_typed_for_an_abandoned_question_is_dropped():
    is_open, typed = threading.Event(), threading.Event()
    asked = []

    class Keyboard:
        one_at_a_time = True

        def choose(self, request, *, mode):
            asked.append(request.args['path'])
            if request.args['path'] == 'a':
                is_open.set()
                typed.wait(60)
                return ApprovalDecision(approved=True)  # what was typed, for `a`
            return ApprovalDecision(approved=False, note='not b')

    first = asyncio.create_task(
        ask(Keyboard(), [request_for('a')], mode='interactive', timeout_s=None, lock=PROCESS_LOCK)
    )
    await asyncio.to_thread(is_open.wait, 60)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(ApprovalController(ui=Keyboard(), timeout=60).request_approval(request_for('b')))
    await asyncio.sleep(0)
    typed.set()
    decision = await second

    assert (decision.approved, decision.note) == (False, 'not b')
    assert asked == ['a', 'b']


def test_audit_log_changed_by_another_process_is_not_written_to(tmp_path):
    delete, ran = deleting()
    sink = JsonlAuditSink(tmp_path / 'audit.jsonl', key=KEY)
    controller = ApprovalController(ui=approve_all(), audit=sink)
    run_tool(delete, NESTED, controller)
    (tmp_path / 'audit.jsonl').write_text('')

    with pytest.raises(ApprovalDenied, match='could not be written to the audit log'):
        run_tool(delete, NESTED, controller)

    sink.close()
    assert len(ran) == 1
    with pytest.raises(AuditError):
        sink.record({'event': 'note'})

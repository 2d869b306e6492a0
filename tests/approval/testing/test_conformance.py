"""The conformance suites pass on correct stores, sinks and UIs, and fail on deliberately wrong ones."""

import asyncio
import json
import secrets
import threading
from contextlib import suppress
from itertools import count

import pytest
from tool_approval.audit import JsonlAuditSink
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI, check_audit_sink, check_store, check_ui

from tests.approval.parts import KEY, ListSink, request_for
from tool_approval import ApprovalDecision


class DictStore:
    """A correct store in memory; each of those below is wrong in one way."""

    def __init__(self, place):
        self.scope = {'project': 'p'}
        self.key = place.setdefault('key', secrets.token_bytes(32))
        self.kept = place.setdefault('kept', {})
        self.lock = place.setdefault('lock', threading.Lock())

    def get(self, approval_id):
        return self.kept.get(approval_id)

    def put(self, approval):
        self.kept[approval.id] = approval

    def change(self, approval_id, change):
        with self.lock:
            found = self.kept.get(approval_id)
            changed = None if found is None else change(found)
            if changed is not None:
                self.kept[approval_id] = changed
            return changed

    def remove(self, approval_id):
        return self.kept.pop(approval_id, None) is not None

    def list_all(self):
        return list(self.kept.values())


class Forgets(DictStore):
    """Keeps the newest entry alone."""

    def put(self, approval):
        self.kept.clear()
        super().put(approval)


class LosesWhatIsWrittenAtOnce(DictStore):
    """Reads, changes and writes without a lock; the barrier makes all of them read before any of them writes."""

    def __init__(self, place):
        super().__init__(place)
        self.all_have_read = threading.Barrier(16)

    def put(self, approval):
        read = dict(self.kept)
        if threading.current_thread() is not threading.main_thread():
            with suppress(threading.BrokenBarrierError):
                self.all_have_read.wait(timeout=30)
        read[approval.id] = approval
        self.kept.clear()
        self.kept.update(read)


class KeepsForItselfAlone(DictStore):
    def __init__(self, place):
        super().__init__(place)
        self.kept = {}


class HasAKeyForItselfAlone(DictStore):
    def __init__(self, place):
        super().__init__(place)
        self.key = secrets.token_bytes(32)


class HasAShortKey(DictStore):
    def __init__(self, place):
        super().__init__(place)
        self.key = b'short'


class HasAnotherScopeEachTime(DictStore):
    numbers = count()

    def __init__(self, place):
        super().__init__(place)
        self.scope = {'number': str(next(self.numbers))}


class ListsTheNewestFirst(DictStore):
    def list_all(self):
        return super().list_all()[::-1]


class NeverReplaces(DictStore):
    def put(self, approval):
        self.kept.setdefault(approval.id, approval)


class NeverRemoves(DictStore):
    def remove(self, approval_id):
        return approval_id in self.kept


class CountsNothing(DictStore):
    def change(self, approval_id, change):
        found = self.kept.get(approval_id)
        return None if found is None else change(found)


class CountsWithoutALock(DictStore):
    """Reads before it writes; the barrier makes all of them read before any of them writes."""

    def __init__(self, place):
        super().__init__(place)
        self.all_have_read = place.setdefault('barrier', threading.Barrier(16))

    def change(self, approval_id, change):
        found = self.kept.get(approval_id)
        changed = None if found is None else change(found)
        if threading.current_thread() is not threading.main_thread():
            with suppress(threading.BrokenBarrierError):
                self.all_have_read.wait(timeout=30)
        if changed is not None:
            self.kept[approval_id] = changed
        return changed


class ChangesWithoutAChange(DictStore):
    def change(self, approval_id, change):
        changed = super().change(approval_id, change)
        if changed is None:
            self.kept.pop(approval_id, None)
        return changed


class RaisesFromThreads(DictStore):
    def put(self, approval):
        if threading.current_thread() is not threading.main_thread():
            raise OSError('not in this thread')
        super().put(approval)


def test_the_stores_suite_passes_on_the_shipped_store(tmp_path):
    check_store(lambda: FileApprovalStore(tmp_path / 'project', tmp_path / 'state' / 'approvals.json'))


def test_the_stores_suite_passes_on_a_store_in_memory():
    place = {}

    check_store(lambda: DictStore(place))


@pytest.mark.parametrize(
    'wrong',
    [
        Forgets,
        LosesWhatIsWrittenAtOnce,
        KeepsForItselfAlone,
        HasAKeyForItselfAlone,
        HasAShortKey,
        HasAnotherScopeEachTime,
        ListsTheNewestFirst,
        NeverReplaces,
        NeverRemoves,
        CountsNothing,
        CountsWithoutALock,
        ChangesWithoutAChange,
    ],
)
def test_the_stores_suite_fails_on_a_store_that_is_wrong(wrong):
    place = {}

    with pytest.raises(AssertionError):
        check_store(lambda: wrong(place))


def test_the_stores_suite_raises_what_a_thread_raised():
    place = {}

    with pytest.raises(OSError, match='not in this thread'):
        check_store(lambda: RaisesFromThreads(place))


class SharedSink(ListSink):
    """A correct sink in memory; each of those below is wrong in one way."""

    def __init__(self, entries):
        super().__init__()
        self.all = entries


class Buffers(SharedSink):
    """Writes two entries at a time."""

    def __init__(self, entries):
        super().__init__(entries)
        self.buffer = []

    def record(self, entry):
        self.buffer.append(entry)
        if len(self.buffer) == 2:
            self.all.extend(self.buffer)
            self.buffer.clear()


class PutsTheNewestFirst(SharedSink):
    def record(self, entry):
        self.all.insert(0, dict(entry))


class StartsAnew(SharedSink):
    def __init__(self, entries):
        super().__init__(entries)
        entries.clear()


class ChangesWhatItWrites(SharedSink):
    def record(self, entry):
        super().record(json.loads(json.dumps(entry).replace('1.5', '1')))


class LosesWhatThreadsWrite(SharedSink):
    def record(self, entry):
        if threading.current_thread() is threading.main_thread():
            super().record(entry)


def test_the_sinks_suite_passes_on_the_shipped_sink(tmp_path):
    path = tmp_path / 'audit.jsonl'
    sinks = []

    def make():
        sinks.append(JsonlAuditSink(path, key=KEY))
        return sinks[-1]

    check_audit_sink(make, lambda: [json.loads(line) for line in path.read_text().splitlines()])

    for sink in sinks:
        sink.close()
    assert len(sinks) == 2


def test_the_sinks_suite_passes_on_a_sink_in_memory():
    entries = []

    check_audit_sink(lambda: SharedSink(entries), lambda: entries)


@pytest.mark.parametrize('wrong', [Buffers, PutsTheNewestFirst, StartsAnew, ChangesWhatItWrites, LosesWhatThreadsWrite])
def test_the_sinks_suite_fails_on_a_sink_that_is_wrong(wrong):
    entries = []

    with pytest.raises(AssertionError):
        check_audit_sink(lambda: wrong(entries), lambda: entries)


class Groups(RecordingUI):
    """Asks about a group at once."""

    def choose_group(self, requests, *, mode):
        return [self.choose(request, mode=mode) for request in requests]


class ApprovesEverything(RecordingUI):
    def __init__(self, approves):
        super().__init__(True)


class DeniesEverything(RecordingUI):
    def __init__(self, approves):
        super().__init__(False)


class ApprovesGroups(Groups):
    def choose_group(self, requests, *, mode):
        return ApprovalDecision(approved=True)


class ForgetsOneOfAGroup(Groups):
    def choose_group(self, requests, *, mode):
        return super().choose_group(requests[1:], mode=mode)


class FailsOnControlCharacters(RecordingUI):
    def choose(self, request, *, mode):
        if not request.description.isprintable() or 'command' in request.args:
            raise UnicodeError('cannot be shown')
        return super().choose(request, mode=mode)


class FailsOnNoArguments(RecordingUI):
    def choose(self, request, *, mode):
        if not request.args:
            raise ValueError('nothing to show')
        return super().choose(request, mode=mode)


class SaysYesInWords(RecordingUI):
    def choose(self, request, *, mode):
        return 'yes'


class Hangs(RecordingUI):
    async def choose(self, request, *, mode):
        await asyncio.Event().wait()


@pytest.mark.parametrize('make', [RecordingUI, Groups, lambda approves: ScriptedUI([approves] * 10)])
def test_the_uis_suite_passes_on_the_shipped_fakes(make):
    asyncio.run(check_ui(make))


def responding(text):
    return RecordingUI(ApprovalDecision(approved=False, response=text))


def test_the_uis_suite_checks_responses_too():
    asyncio.run(check_ui(RecordingUI, make_responder=responding))

    for wrong in (lambda text: responding(text.strip('"\'\\')), lambda text: RecordingUI(False)):
        with pytest.raises(AssertionError):
            asyncio.run(check_ui(RecordingUI, make_responder=wrong))


@pytest.mark.parametrize(
    'wrong',
    [
        ApprovesEverything,
        DeniesEverything,
        ApprovesGroups,
        ForgetsOneOfAGroup,
        FailsOnControlCharacters,
        FailsOnNoArguments,
        SaysYesInWords,
        Hangs,
    ],
)
def test_the_uis_suite_fails_on_a_ui_that_is_wrong(wrong):
    with pytest.raises(AssertionError):
        asyncio.run(check_ui(wrong, timeout_s=0.01 if wrong is Hangs else 10.0))


@pytest.mark.parametrize('more', [{'override_args': {'path': 'b'}}, {'override_args': {}}, {'remember': 'session'}])
def test_the_uis_suite_fails_on_a_ui_that_edits_or_remembers_for_its_approver(more):
    def exceeding(approves):
        return RecordingUI(ApprovalDecision(approved=True, **more) if approves else False)

    with pytest.raises(AssertionError, match='neither edited nor remembered'):
        asyncio.run(check_ui(exceeding))


def test_conformance_distinguishes_a_failing_ui_from_a_denying_one():
    with pytest.raises(AssertionError, match='The approval prompt failed'):
        asyncio.run(check_ui(lambda approves: RecordingUI(approves or ValueError())))


def test_the_uis_suite_asks_about_requests_of_ones_own_too():
    asked = []

    asyncio.run(
        check_ui(
            lambda approves: RecordingUI(lambda request: asked.append(request) or approves),
            requests=[request_for('mine')],
        )
    )

    assert [request.args.get('path') for request in asked].count('mine') == 2
    assert {request.metadata['batch_size'] for request in asked} == {5}

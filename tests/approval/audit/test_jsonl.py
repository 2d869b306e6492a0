import asyncio
import errno
import fcntl
import json
import os
import stat
import threading
from functools import partial

import pytest
from tool_approval.audit import Head, JsonlAuditSink, jsonl, load_key, verify
from tool_approval.audit.chain import START

from tests.approval.parts import KEY, finish, in_threads, start_python
from tool_approval import ApprovalController, ApprovalRequest, AuditError

NOTE = {'event': 'note'}


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'log' / 'audit.jsonl'


@pytest.fixture
def sink(path):
    sink = JsonlAuditSink(path, key=KEY)
    yield sink
    sink.close()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_file_of_the_log_is_private(sink, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_entry_is_in_the_file_when_record_returns(sink, path):
    sink.record({'event': 'note', 'word': 'ä\n'})

    [line] = lines_of(path)
    assert (line['word'], line['line'], line['previous']) == ('ä\n', 1, START)
    assert path.read_bytes().count(b'\n') == 1


@pytest.mark.parametrize('fsync', [True, False])
def test_sink_syncs_each_entry_to_disk_when_configured(monkeypatch, path, fsync):
    waited = []
    monkeypatch.setattr(os, 'fsync', waited.append)
    sink = JsonlAuditSink(path, key=KEY, fsync=fsync)

    sink.record(NOTE)

    sink.close()
    assert len(waited) == fsync


def test_a_log_is_continued(path):
    for _ in range(3):
        sink = JsonlAuditSink(path, key=KEY)
        sink.record(NOTE)
        sink.close()

    finding = verify(path, key=KEY)
    assert (finding.is_intact, finding.head.lines) == (True, 3)


def test_the_head_includes_what_others_wrote(sink, path):
    assert sink.head == Head(lines=0, mac=START)
    other = JsonlAuditSink(path, key=KEY)
    other.record(NOTE)
    other.close()

    assert sink.head == verify(path, key=KEY).head
    assert sink.head.lines == 1


def test_short_key_is_refused(path):
    with pytest.raises(ValueError, match='at least 16 bytes'):
        JsonlAuditSink(path, key=b'short')


def test_a_log_of_another_key_is_not_continued(sink, path):
    sink.record(NOTE)

    with pytest.raises(
        AuditError, match=r'written with another key\. Verify the log, move it away, and start a new one'
    ):
        JsonlAuditSink(path, key=b'x' * 32)


@pytest.mark.parametrize('tail', [b'half', b'\n', b'{}\n', b'x' * 2_000_000 + b'\n'])
def test_a_log_whose_last_line_is_not_intact_is_not_continued(sink, path, tail):
    sink.record(NOTE)
    with path.open('ab') as file:
        file.write(tail)

    with pytest.raises(AuditError, match='the last line is not intact'):
        JsonlAuditSink(path, key=KEY)
    with pytest.raises(AuditError, match='the last line is not intact'):
        sink.record(NOTE)


def replace_by_another(path):
    path.rename(path.with_name('aside'))
    path.touch(0o600)


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        (lambda path: os.truncate(path, 0), 'the file became shorter while it was open'),
        (lambda path: path.rename(path.with_name('aside')), 'No such file'),
        (replace_by_another, 'replaced by another file'),
        (lambda path: path.chmod(0o644), r'others can access the file \(mode 0644\)'),
    ],
    ids=['shorter', 'gone', 'replaced', 'readable'],
)
def test_log_that_was_changed_while_it_was_open_is_not_continued(sink, path, change, reason):
    sink.record(NOTE)
    change(path)

    with pytest.raises(AuditError, match=reason):
        sink.record(NOTE)


@pytest.mark.parametrize('others', [1, 2, 3])
def test_log_that_lost_own_lines_is_not_continued_even_if_others_follow(sink, path, others):
    sink.record({'event': 'note', 'by': 'first'})
    kept = path.stat().st_size
    sink.record({'event': 'note', 'by': 'first'})
    os.truncate(path, kept)
    other = JsonlAuditSink(path, key=KEY)
    for _ in range(others):
        other.record({'event': 'note', 'by': 'other'})
    other.close()
    log = path.read_bytes()

    for _ in range(2):
        with pytest.raises(AuditError, match='the last known line was changed or removed'):
            sink.record(NOTE)
    with pytest.raises(AuditError, match='the last known line'):
        _ = sink.head
    assert path.read_bytes() == log
    assert verify(path, key=KEY).is_intact


def test_a_call_is_denied_where_lines_were_cut(sink, path):
    controller = ApprovalController('approve_all', audit=sink)
    delete = ApprovalRequest(tool_name='delete')
    before = asyncio.run(controller.request_approval(delete))
    os.truncate(path, 0)
    JsonlAuditSink(path, key=KEY).record({'event': 'note', 'text': 'a' * 2_000})

    decision = asyncio.run(controller.request_approval(delete))

    assert (before.approved, decision.approved, decision.decided_by) == (True, False, ('audit',))


def test_a_log_that_cannot_be_opened_is_an_error(tmp_path):
    (tmp_path / 'link').symlink_to('elsewhere')

    with pytest.raises(AuditError, match='symbolic link'):
        JsonlAuditSink(tmp_path / 'link', key=KEY)


def test_closed_log_accepts_no_entries(sink):
    sink.close()
    sink.close()

    with pytest.raises(AuditError, match='the log is closed'):
        sink.record(NOTE)
    with pytest.raises(AuditError, match='the log is closed'):
        _ = sink.head


@pytest.mark.parametrize('word', [float('nan'), '\ud800', object()])
def test_an_entry_that_has_no_json_is_refused_and_leaves_nothing(sink, path, word):
    with pytest.raises(AuditError, match='the entry cannot be written'):
        sink.record({'event': 'note', 'word': word})

    sink.record(NOTE)
    assert verify(path, key=KEY).head.lines == 1


def test_an_entry_of_a_megabyte_is_refused_and_leaves_nothing(sink, path):
    with pytest.raises(AuditError, match='longer than 1048576 bytes'):
        sink.record({'event': 'note', 'word': 'x' * jsonl.LONGEST_LINE})

    assert path.read_bytes() == b''


def test_the_longest_line_can_be_continued(sink, path):
    sink.record({'event': 'note', 'word': ''})
    rest = jsonl.LONGEST_LINE - path.stat().st_size
    sink.record({'event': 'note', 'word': 'x' * rest})
    last = path.read_bytes().splitlines(keepends=True)[-1]

    other = JsonlAuditSink(path, key=KEY)
    other.record(NOTE)
    other.close()

    assert len(last) == jsonl.LONGEST_LINE
    assert verify(path, key=KEY).head.lines == 3


@pytest.mark.parametrize('written', [0, 1, 50])
def test_a_full_disk_leaves_the_log_as_it_was(monkeypatch, sink, path, written):
    sink.record(NOTE)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, 'write', lambda descriptor, line: write(descriptor, line[:written]))

        with pytest.raises(AuditError, match=os.strerror(errno.ENOSPC)):
            sink.record(NOTE)

    assert verify(path, key=KEY).head.lines == 1
    sink.record(NOTE)
    assert verify(path, key=KEY).head.lines == 2


# A process cannot write beyond the limit, as on a full disk.
FULL = """
import asyncio, resource, sys
from pathlib import Path
from tool_approval import ApprovalController, ApprovalRefused, execute_tool
from tool_approval.audit import JsonlAuditSink
from tool_approval.testing import approve_all

path, rule, room = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sink = JsonlAuditSink(path, key=b'k' * 32)
controller = ApprovalController(policy={'show': {'approval': rule}}, ui=approve_all(), audit=sink)

def attempt(word):
    try:
        asyncio.run(execute_tool(lambda word: print(word), 'show', {'word': word}, controller, {'run_id': 'r'}))
    except ApprovalRefused as refusal:
        print(type(refusal).__name__)

attempt('first')
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, unlimited[1]))
attempt('second')
attempt('third')
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
attempt('last')
"""


@pytest.mark.parametrize(('rule', 'lines'), [('required', 3), ('none', 2)])
@pytest.mark.parametrize('room', [0, 100])
def test_a_call_without_room_for_its_line_does_not_run_and_the_next_does(path, rule, lines, room):
    [(code, output, errors)] = finish(start_python(FULL, path, rule, room))

    assert (code, output.split()) == (0, ['first', 'ApprovalDenied', 'ApprovalDenied', 'last'])
    assert 'was denied' in errors or 'was refused' in errors
    finding = verify(path, key=KEY)
    assert (finding.is_intact, finding.head.lines, finding.unfinished) == (True, 2 * lines, ())


def test_a_line_that_does_not_reach_the_disk_is_not_in_the_log(monkeypatch, path):
    sink = JsonlAuditSink(path, key=KEY, fsync=True)

    def broken(descriptor):
        raise OSError(errno.EIO, 'broken disk')

    with monkeypatch.context() as patch:
        patch.setattr(os, 'fsync', broken)
        with pytest.raises(AuditError, match='broken disk'):
            sink.record(NOTE)

    assert path.read_bytes() == b''
    sink.record(NOTE)
    sink.close()
    assert verify(path, key=KEY).head.lines == 1


def test_the_lock_is_free_again_after_an_error(sink, path):
    with pytest.raises(AuditError):
        sink.record({'event': float('nan')})

    with path.open('rb') as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_threads_write_at_once_and_nothing_is_lost(path):
    shared = [JsonlAuditSink(path, key=KEY) for _ in range(2)]
    begin = threading.Barrier(8)

    def work(name):
        begin.wait(60)
        for number in range(50):
            shared[name % 2].record({'event': 'note', 'name': name, 'number': number})

    in_threads(*(partial(work, name) for name in range(8)))
    for sink in shared:
        sink.close()

    assert verify(path, key=KEY).is_intact
    assert sorted((line['name'], line['number']) for line in lines_of(path)) == [
        (name, number) for name in range(8) for number in range(50)
    ]


WRITES = """
import sys
from pathlib import Path
from tool_approval.audit import JsonlAuditSink, load_key
folder, name, count = sys.argv[1:]
sys.stdin.read()
sink = JsonlAuditSink(Path(folder, 'log', 'audit.jsonl'), key=load_key(Path(folder, 'keys', 'audit.key')))
for number in range(int(count)):
    sink.record({'event': 'note', 'name': name, 'number': number})
"""


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path, path):
    processes = [start_python(WRITES, tmp_path, name, 200) for name in 'ab']

    ended = finish(*processes)

    assert ended == [(0, '', '')] * 2
    assert verify(path, key=load_key(tmp_path / 'keys' / 'audit.key')).is_intact
    found = lines_of(path)
    assert sorted((line['name'], line['number']) for line in found) == [(name, n) for name in 'ab' for n in range(200)]
    for name in 'ab':
        assert [line['number'] for line in found if line['name'] == name] == list(range(200))


FORKS = """
import os, sys
from tool_approval.audit import JsonlAuditSink
sink = JsonlAuditSink(sys.argv[1], key=b'k' * 32)
sink.record({'event': 'note', 'name': 'before'})
child = os.fork()
for number in range(200):
    sink.record({'event': 'note', 'name': 'parent' if child else 'child', 'number': number})
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_shares_the_log_and_not_the_lock(path):
    ended = finish(start_python(FORKS, path))

    assert ended == [(0, '', '')]
    assert verify(path, key=KEY).is_intact
    assert sorted((line['name'], line.get('number')) for line in lines_of(path)[1:]) == [
        (name, number) for name in ('child', 'parent') for number in range(200)
    ]


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / 'keys' / 'audit.key'


def test_a_key_is_made_once_for_its_user_alone(key_file):
    made = load_key(key_file)

    assert len(made) == 32
    assert load_key(key_file) == made
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700


def test_two_processes_make_one_key(key_file):
    script = (
        'import sys\nfrom tool_approval.audit import load_key\nsys.stdin.read()\nprint(load_key(sys.argv[1]).hex())'
    )
    processes = [start_python(script, key_file) for _ in range(4)]

    keys = {output for _, output, _ in finish(*processes)}

    assert keys == {load_key(key_file).hex() + '\n'}


@pytest.mark.parametrize('content', ['hello', 'ab' * 31, 'ab' * 33, 'zz' * 32, '\xff'])
def test_a_file_that_holds_no_key_is_refused(key_file, content):
    load_key(key_file)
    key_file.write_bytes(content.encode('latin-1'))

    with pytest.raises(AuditError, match='the key file cannot be used: it contains no valid key'):
        load_key(key_file)


def test_a_key_that_others_may_read_is_refused(key_file):
    load_key(key_file)
    key_file.chmod(0o640)

    with pytest.raises(AuditError, match='the key file cannot be used: others can access the file'):
        load_key(key_file)


def test_key_written_in_part_is_not_kept(monkeypatch, key_file):
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, 'write', lambda descriptor, text: write(descriptor, text[:10]))
        with pytest.raises(AuditError, match=os.strerror(errno.ENOSPC)):
            load_key(key_file)

    assert len(load_key(key_file)) == 32


def test_a_log_that_was_replaced_before_a_fork_is_not_continued(monkeypatch, sink, path):
    sink.record(NOTE)
    monkeypatch.setattr(os, 'getpid', lambda: -1)
    sink.record(NOTE)
    assert verify(path, key=KEY).head.lines == 2
    path.rename(path.with_name('aside'))

    monkeypatch.setattr(os, 'getpid', lambda: -2)

    for _ in range(2):
        with pytest.raises(AuditError, match='No such file'):
            sink.record(NOTE)


def test_a_key_is_made_under_a_lock(monkeypatch, key_file):
    written = []

    def append(descriptor, content, *, size, fsync):
        with key_file.open('rb') as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        written.append(content)

    monkeypatch.setattr(jsonl, 'append_whole', append)

    key = load_key(key_file)

    assert written == [key.hex().encode() + b'\n']

"""Showing and verifying a log."""

import asyncio
import json

import pytest
from tool_approval.audit import JsonlAuditSink, load_key
from tool_approval.testing import approve_all

from tool_approval import ApprovalController, ApprovalMemory, ApprovalRequest


@pytest.fixture
def log(work):
    """A log of an approval, its outcome, and a denial."""
    key = load_key(work.parent / 'keys/audit.key')
    sink = JsonlAuditSink(work / 'audit.jsonl', key=key)
    approving, strict = (ApprovalController(mode, audit=sink) for mode in ('approve_all', 'strict'))

    async def decide():
        request = ApprovalRequest(tool_name='send', tool_call_id='1', args={'to': 'ada\x1b[31m'})
        await approving.request_approval(request)
        approving.record_outcome(request, 'failed', error=ValueError('no'))
        await strict.request_approval(ApprovalRequest(tool_name='send', args={'to': 'bob'}))

    asyncio.run(decide())
    sink.record({'event': 'other'})
    sink.record({'event': 'outcome', 'outcome': 'executed', 'tool_name': 7})
    asking = ApprovalController(ui=approve_all(), audit=sink, memory=ApprovalMemory())
    request = ApprovalRequest(tool_name='send', args={'to': 'eve'})
    asyncio.run(asking.request_approval(request))
    asking.record_unasked(request)
    asking.record_unasked(request, note='never')
    sink.record({'event': 'question', 'asked': ['ada', 'bob'], 'payload': {}})
    sink.record({'event': 'decision', 'approved': True, 'how': 'memory', 'decided_by': ['ada'], 'payload': {}})
    yield sink
    sink.close()


def verify(tool_approval, *arguments):
    return tool_approval('audit', 'verify', 'audit.jsonl', '--key', '../keys/audit.key', *arguments)


def test_audit_entries_are_shown_one_per_line(tool_approval, log):
    lines = tool_approval('audit', 'show', 'audit.jsonl').out.splitlines()

    assert len(lines) == 11
    assert lines[0].startswith('    1  20')
    assert lines[0].endswith('approved by mode  send {"to":"ada\\u001b[31m"}')
    assert lines[1].endswith('  failed (ValueError)  send')
    assert 'denied by mode  send {"to":"bob"}: Strict mode: calls that need approval' in lines[2]
    assert lines[3] == '    4  -  other'
    assert lines[4] == '    5  -  executed  -'
    assert lines[5].endswith('asked RecordingUI  send {"to":"eve"}')
    assert lines[6].endswith('approved by ui  send {"to":"eve"}')
    assert lines[7].endswith('runs unasked by policy  send {"to":"eve"}')
    assert lines[8].endswith('blocked by policy  send {"to":"eve"}: never')
    assert lines[9] == '   10  -  asked ada, bob  - {}'
    assert lines[10] == '   11  -  approved by ada before  - {}'


def test_line_that_is_not_an_entry_is_marked(tool_approval, work):
    (work / 'audit.jsonl').write_bytes(b'\xff\n{\n' + b'x' * (1024 * 1024 + 5))

    finished = tool_approval('audit', 'show', 'audit.jsonl')

    assert finished.out.count('not a line of an audit log') == 2
    assert finished.status == 2
    assert "audit log 'audit.jsonl': line 3 is too long" in finished.err


def test_without_paths_the_log_of_run_is_used(tool_approval, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    state = tmp_path / 'state' / 'tool-approval'
    sink = JsonlAuditSink(state / 'audit' / 'decisions.jsonl', key=load_key(state / 'keys' / 'audit.key'))
    sink.record({'event': 'other', 'at': 'now'})
    sink.close()

    assert tool_approval('audit', 'show').out == '    1  now  other\n'
    assert tool_approval('audit', 'verify').out.startswith('intact: 1 lines\n')
    assert tool_approval('audit', 'trace').json['type'] == 'session_end'


def test_a_named_log_needs_its_key(tool_approval, log):
    finished = tool_approval('audit', 'verify', 'audit.jsonl')

    assert finished.status == 2
    assert 'name the key file of the log with `--key FILE`' in finished.err


def test_without_a_log_of_run_the_commands_say_which_file_is_missing(tool_approval, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'none'))

    assert 'none/tool-approval/audit/decisions.jsonl: No such file' in tool_approval('audit', 'show').err
    assert 'there is no key file' in tool_approval('audit', 'verify').err


def test_a_trace_has_the_events_of_the_calls(tool_approval, log):
    lines = [json.loads(line) for line in tool_approval('audit', 'trace', 'audit.jsonl').out.splitlines()]

    assert {line['schema_version'] for line in lines} == {2}
    assert [line['type'] for line in lines].count('approval_decision') == 4
    assert lines[-1]['type'] == 'session_end'


def test_unchanged_log_is_reported_as_intact(tool_approval, log):
    finished = verify(tool_approval)

    assert finished.status == 0
    assert finished.out.startswith(f'intact: 11 lines\nhead of the intact part: {log.head.mac}\n')


def test_first_changed_line_of_the_log_is_named(tool_approval, log, work):
    text = (work / 'audit.jsonl').read_text()
    (work / 'audit.jsonl').write_text(text.replace('"bob"', '"eve"'))

    finished = verify(tool_approval, '--json')

    assert finished.status == 1
    assert (finished.json['is_intact'], finished.json['broken_line'], finished.json['lines']) == (False, 3, 2)
    assert verify(tool_approval).out.startswith('broken at line 3: the line was changed')


def test_log_without_its_last_lines_is_found_by_the_noted_head(tool_approval, log, work):
    head = log.head.mac
    lines = (work / 'audit.jsonl').read_text().splitlines(keepends=True)
    (work / 'audit.jsonl').write_text(lines[0])

    plain, with_head = verify(tool_approval), verify(tool_approval, '--head', head)

    assert (plain.status, with_head.status) == (0, 1)
    assert 'line 1: the call was approved, but the log has no outcome for it' in plain.out


def test_missing_audit_key_is_not_created(tool_approval, log, work):
    finished = tool_approval('audit', 'verify', 'audit.jsonl', '--key', 'no.key')

    assert finished.status == 2
    assert 'there is no key file no.key' in finished.err
    assert not (work / 'no.key').exists()

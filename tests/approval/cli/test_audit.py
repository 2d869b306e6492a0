"""Showing and verifying a log."""

import asyncio

import pytest
from tool_approval.audit import JsonlAuditSink, load_key

from tool_approval import ApprovalController, ApprovalRequest


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
    yield sink
    sink.close()


def verify(tool_approval, *arguments):
    return tool_approval('audit', 'verify', 'audit.jsonl', '--key', '../keys/audit.key', *arguments)


def test_audit_entries_are_shown_one_per_line(tool_approval, log):
    lines = tool_approval('audit', 'show', 'audit.jsonl').out.splitlines()

    assert len(lines) == 5
    assert lines[0].startswith('    1  20')
    assert lines[0].endswith('approved by mode  send {"to":"ada\\u001b[31m"}')
    assert lines[1] == '    2  failed (ValueError)  send'
    assert 'denied by mode  send {"to":"bob"}: Strict mode: calls that need approval' in lines[2]
    assert lines[3] == '    4  other'
    assert lines[4] == '    5  executed  -'


def test_line_that_is_not_an_entry_is_marked(tool_approval, work):
    (work / 'audit.jsonl').write_bytes(b'\xff\n{\n' + b'x' * (1024 * 1024 + 5))

    finished = tool_approval('audit', 'show', 'audit.jsonl')

    assert finished.out.count('not a line of an audit log') == 3
    assert finished.status == 2
    assert 'line 3 of audit.jsonl is too long' in finished.err


def test_unchanged_log_is_reported_as_intact(tool_approval, log):
    finished = verify(tool_approval)

    assert finished.status == 0
    assert finished.out.startswith(f'intact: 5 lines\nhead of the intact part: {log.head.mac}\n')


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

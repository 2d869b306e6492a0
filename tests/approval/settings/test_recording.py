"""The audit log says under which settings each decision was made."""

import asyncio
import json

import pytest
from tool_approval.audit import JsonlAuditSink, verify
from tool_approval.settings import SettingsAudit, TrustStore, load_settings

from tests.approval.parts import noon
from tool_approval import ApprovalController, AuditError, execute_tool

pytest.importorskip('yaml')

KEY = b'k' * 32


def delete(path: str) -> str:
    return f'deleted {path}'


@pytest.fixture
def loaded(tmp_path):
    (tmp_path / 'work').mkdir()
    (tmp_path / 'work' / 'approvals.yaml').write_text('tools: {delete: {approval: required}}')
    return load_settings(directory=tmp_path / 'work', trust=TrustStore(tmp_path / 'state' / 'trusted.json'))


def test_log_starts_with_the_settings_and_has_their_digest_in_every_line(tmp_path, loaded):
    log = JsonlAuditSink(tmp_path / 'audit.jsonl', key=KEY)
    controller = ApprovalController('approve_all', policy=loaded.settings.policy, audit=SettingsAudit(log, loaded))

    asyncio.run(execute_tool(delete, 'delete', {'path': 'a'}, controller))
    log.close()

    lines = [json.loads(line) for line in (tmp_path / 'audit.jsonl').read_text().splitlines()]
    assert [line['event'] for line in lines] == ['settings', 'decision', 'outcome']
    assert {line['settings_digest'] for line in lines} == {loaded.digest}
    assert lines[0]['source'] == str(loaded.source)
    assert (lines[0]['trusted'], lines[0]['why_untrusted']) == (False, 'the user has not trusted the file')
    assert verify(tmp_path / 'audit.jsonl', key=KEY).is_intact
    assert verify(tmp_path / 'audit.jsonl', key=KEY).unfinished == ()


def test_log_starts_with_the_absence_of_a_file(tmp_path):
    written = []

    class Sink:
        def record(self, entry):
            written.append(dict(entry))

    SettingsAudit(Sink(), load_settings(directory=tmp_path), now=noon)

    assert written[0] == {
        'event': 'settings',
        'at': '2026-03-04T12:00:00+00:00',
        'source': None,
        'settings_digest': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        'trusted': True,
        'why_untrusted': None,
    }


def test_log_that_cannot_be_written_is_an_error_at_the_start(loaded):
    class Sink:
        def record(self, entry):
            raise AuditError('audit.jsonl', 'No space left on device')

    with pytest.raises(AuditError):
        SettingsAudit(Sink(), loaded)


def test_file_with_an_undecodable_name_is_logged(tmp_path):
    folder = tmp_path / '\udcff'
    folder.mkdir()
    (folder / 'approvals.yaml').write_text('mode: strict')
    log = JsonlAuditSink(tmp_path / 'audit.jsonl', key=KEY)

    SettingsAudit(log, load_settings(directory=folder, named=True))

    assert '?/approvals.yaml' in (tmp_path / 'audit.jsonl').read_text()
    log.close()

"""Logs for the commands that read one: as written by the real sink, with any calls, times and settings."""

from datetime import UTC, datetime, timedelta

from tool_approval.audit import JsonlAuditSink, load_key

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Record:
    """A log with a line for each question and decision, in the form of the controller's entries."""

    def __init__(self, folder):
        self.path, self.key_path = folder / 'audit.jsonl', folder / 'keys/audit.key'
        self.sink = JsonlAuditSink(self.path, key=load_key(self.key_path))
        self.at = START
        self.number = 0

    @property
    def options(self):
        return str(self.path), '--key', str(self.key_path)

    def settings(self, source, digest):
        self.write({'event': 'settings', 'source': str(source), 'settings_digest': digest})

    def asked(self, tool, payload, answer=True, times=1, answered_s=5, every=timedelta(hours=3), **more):
        """Questions with the same answer, one every three hours."""
        for _ in range(times):
            call = self._call(tool, payload)
            self.write({'event': 'question', **call, 'ui': 'Test', 'asked': []})
            decided = (self.at + timedelta(seconds=answered_s)).isoformat()
            how = {'how': 'person', 'decided_by': ['ada'], 'has_changed_arguments': False, 'decided_at': decided}
            decision = {'event': 'decision', **call, 'question_digest': call['digest'], 'approved': answer}
            self.write({**decision, **how, **more})
            self.at += every

    def unasked(self, tool, payload):
        self.write({'event': 'unasked', **self._call(tool, payload), 'decided_by': ['policy']})

    def blocked(self, tool, payload):
        self.write({'event': 'blocked', **self._call(tool, payload), 'decided_by': ['policy'], 'note': 'no'})

    def open(self, tool, payload):
        self.write({'event': 'question', **self._call(tool, payload), 'ui': 'Test', 'asked': []})

    def write(self, entry):
        self.sink.record({'at': self.at.isoformat(), **entry})

    def _call(self, tool, payload):
        self.number += 1
        return {'tool_name': tool, 'tool_call_id': str(self.number), 'digest': str(self.number), 'payload': payload}

"""Log decisions, and detect changes of the log: `python examples/approval_audit.py`.

The log and the key are in two temporary folders. Keep yours apart as well, and the key where no tool can read it.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from tool_approval.audit import JsonlAuditSink, load_key, verify
from tool_approval.testing import RecordingUI

from tool_approval import ApprovalRefused, ApprovalRequest, Approvals, requires_approval


@requires_approval(exclude_keys=['text'])
def send_mail(to: str, subject: str, text: str) -> str:
    """Pretend to send a mail."""
    return f'sent to {to}'


def only_colleagues(request: ApprovalRequest) -> bool | str:
    """Answer in place of an approver: `True` approves, and a text denies with this reason."""
    return request.args['to'].endswith('@example.org') or 'Not outside of the house.'


def work(log: JsonlAuditSink) -> None:
    """Make three calls, of which one is approved, one denied and one blocked."""
    approvals = Approvals({'delete_*': {'approval': 'blocked'}}, ui=RecordingUI(only_colleagues), log=log)
    calls = (
        ('send_mail', {'to': 'ada@example.org', 'subject': 'Key', 'text': 'It is under the mat.'}),
        ('send_mail', {'to': 'eve@example.net', 'subject': 'token=abc123', 'text': 'It is under the mat.'}),
        ('delete_mail', {'to': 'all', 'subject': '', 'text': ''}),
    )
    for number, (name, args) in enumerate(calls, start=1):
        try:
            print(asyncio.run(approvals.execute(send_mail, args, name=name, metadata={'run_id': f'run {number}'})))
        except ApprovalRefused as refusal:
            print(refusal)


def show(path: Path) -> None:
    """Print the log without the values that differ in each run."""
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        what = {True: 'approved', False: 'denied'}.get(entry.get('approved'), entry.get('outcome', entry['event']))
        print(f'{entry["line"]}. {entry["run_id"]} {entry["tool_name"]} {what} {entry.get("payload", "")}'.rstrip())


def check(path: Path, key: bytes, head: str) -> None:
    """Print the finding of `verify` in one line."""
    finding = verify(path, key=key, head=head)
    print('intact' if finding.is_intact else f'line {finding.broken_line}: {finding.problem}')


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        path = Path(folder) / 'audit.jsonl'
        key = load_key(Path(elsewhere) / 'audit.key')
        log = JsonlAuditSink(path, key=key)
        work(log)
        head = log.head.mac  # keep it out of reach of everyone who can write the log
        log.close()
        show(path)
        lines = path.read_text().splitlines(keepends=True)

        print('\nas it was written: ', end='')
        check(path, key, head)

        print('a denial is made an approval: ', end='')
        path.write_text(''.join(lines).replace('"approved":false', '"approved":true', 1))
        check(path, key, head)

        print('a line is taken out: ', end='')
        path.write_text(''.join(lines[:2] + lines[3:]))
        check(path, key, head)

        print('the last line is cut off: ', end='')
        path.write_text(''.join(lines[:-1]))
        check(path, key, head)

        print('read with another key: ', end='')
        path.write_text(''.join(lines))
        check(path, b'another key of some length', head)


if __name__ == '__main__':
    main()

"""Asks without an agent: `ask.py SCRIPT`, a JSON object.

`requests`: fields of each request; they are asked about together. `wait_for`: a pipe that is read before. `timeout`, in
seconds. `quiet_s`. `store`: the file of what is remembered always. `again`: ask a second time. `ignores_hangup`.
"""

import asyncio
import json
import signal
import sys
import termios
from pathlib import Path

from tool_approval.storage import FileApprovalStore
from tool_approval.ui.terminal.terminal_ui import TerminalUI

from tool_approval import ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest


def main(script: dict) -> None:
    if script.get('ignores_hangup'):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    memory = ApprovalMemory(FileApprovalStore('.', path=script['store']) if 'store' in script else None)
    ui = TerminalUI(memory=memory, person='ada', **({'quiet_s': script['quiet_s']} if 'quiet_s' in script else {}))
    controller = ApprovalController(ui=ui, memory=memory, timeout=script.get('timeout'))
    requests = [ApprovalRequest(session_id='s', **fields) for fields in script['requests']]
    print('Before the question.', end='')
    if 'wait_for' in script:
        sys.stdout.flush()
        Path(script['wait_for']).read_text()
    for _ in range(1 + script.get('again', 0)):
        tell(asyncio.run(controller.request_approvals(requests)), script)
    print('The end.')


def tell(decisions: list[ApprovalDecision], script: dict) -> None:
    told = [decision.model_dump(mode='json', exclude_defaults=True, exclude={'decided_at'}) for decision in decisions]
    if 'tell' in script:
        Path(script['tell']).write_text(json.dumps(told))
    print('Decided:', json.dumps(told))


def mode_of_terminal() -> int | None:
    try:
        return termios.tcgetattr(sys.stdin.fileno())[3]
    except termios.error:
        return None


BEFORE = mode_of_terminal()
try:
    main(json.loads(sys.argv[1]))
finally:
    # A shell would go on here.
    if mode_of_terminal() != BEFORE:
        print('The terminal was not put back!')

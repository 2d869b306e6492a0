"""Remember approvals, and revoke them: `python examples/approval_memory.py`.

It remembers an approval for the session, for a whole folder and always. The store of the last kind is in a temporary
folder here; without `path=` it would be in the user's state directory.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tool_approval.storage import FileApprovalStore
from tool_approval.testing import ScriptedUI

from tool_approval import (
    ApprovalContext,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalRequest,
    Approvals,
    RememberOption,
)


class DeleteFile:
    """A tool that offers to remember an approval for a whole folder."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest:
        """Ask about every call. The request alone offers remember options: neither the model nor metadata adds any."""
        folder = ctx.args['path'].rpartition('/')[0]
        option = RememberOption(kind='folder', label=f'every file in {folder}/', payload={'folder': folder})
        return ApprovalRequest(
            tool_name=ctx.tool_name,
            args=ctx.args,
            description=f'Delete {ctx.args["path"]}',
            remember_options=(option,),
        )

    def __call__(self, path: str) -> str:
        """Pretend to delete the file."""
        return f'{path} is gone'


ONCE = ApprovalDecision(approved=True)
SESSION = ApprovalDecision(approved=True, remember='session')
FOLDER = ApprovalDecision(approved=True, remember='session', remember_option='folder')
ALWAYS = ApprovalDecision(approved=True, remember='always')
NO = ApprovalDecision(approved=False, note='not now')


class Conversation:
    """One process in which a user talks to an agent."""

    def __init__(self, answers: Sequence[ApprovalDecision], memory: ApprovalMemory | None = None) -> None:
        """Prepare the answers of the user. The agent and the model are left out."""
        self.person = ScriptedUI(answers)
        self.approvals = Approvals(ui=self.person, remember=memory)

    def delete(self, path: str, session: str = 'monday') -> None:
        """Make one call of the tool, and print a line about it."""
        asked_before = len(self.person.requests)
        context = {'session_id': session, 'caller': 'janitor'}
        try:
            call = self.approvals.execute(DeleteFile(), {'path': path}, name='delete_file', metadata=context)
            told = asyncio.run(call)
        except ApprovalDenied as denial:
            told = denial.reason
        asked = 'asked    ' if len(self.person.requests) > asked_before else 'not asked'
        print(f'{session:8} {path:10} {asked} {told}')


def once_and_for_the_session() -> None:
    print('Once, then for the session:')
    conversation = Conversation([ONCE, SESSION, NO, NO])
    conversation.delete('tmp/a')
    conversation.delete('tmp/a')  # the first approval was for one call only
    conversation.delete('tmp/a')
    conversation.delete('tmp/b')  # another call
    conversation.delete('tmp/a', session='tuesday')


def something_wider() -> None:
    print('The whole folder:')
    conversation = Conversation([FOLDER, NO])
    conversation.delete('tmp/a')
    conversation.delete('tmp/b')
    conversation.delete('letters/a')


def always_and_not_any_more(folder: Path) -> None:
    project = folder / 'project'
    project.mkdir()

    def new_process(answers: Sequence[ApprovalDecision]) -> Conversation:
        return Conversation(answers, ApprovalMemory(FileApprovalStore(project, folder / 'state' / 'approvals.json')))

    print('Always, until it is revoked:')
    new_process([ALWAYS]).delete('tmp/a')
    conversation = new_process([NO])
    conversation.delete('tmp/a', session='tuesday')
    for approval in conversation.approvals.memory.list_approvals():
        print(f'revoking: {approval.label}')
        conversation.approvals.memory.revoke(approval.id)
    conversation.delete('tmp/a', session='tuesday')


def main() -> None:
    once_and_for_the_session()
    something_wider()
    with tempfile.TemporaryDirectory() as folder:
        always_and_not_any_more(Path(folder))


if __name__ == '__main__':
    main()

"""A working directory with a settings file, and an approver who approves everything."""

import asyncio
import textwrap

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend
from tool_approval.settings import RUN_SHELL, Settings, TrustStore, load_settings, open_workspace, parse_settings
from tool_approval.testing import RecordingUI
from tool_approval.tools.file_sandbox import FileTools

from tool_approval import ApprovalController, ApprovalRefused, execute_tool

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')


confining = pytest.mark.skipif(
    isinstance(choose_backend(require=False), UnconfinedBackend),
    reason='no OS sandbox works here; `make install-system` installs bubblewrap',
)
"""For tests that run commands in the OS sandbox."""


class Backend:
    """Records what an OS sandbox would be asked to do, and lets the command run."""

    name = 'recording'

    def __init__(self):
        self.profiles = []
        self.commands = []

    def wrap(self, command, profile, cwd):
        self.commands.append(list(command))
        self.profiles.append(profile)
        return list(command)

    def probe(self):
        raise AssertionError('no test chooses this backend')


def settings_of(text) -> Settings:
    return parse_settings(textwrap.dedent(text))


class Desk:
    """`folder` is the working directory."""

    def __init__(self, folder, text, *, named=True, **options):
        folder.mkdir(exist_ok=True, parents=True)
        self.folder = folder
        (folder / 'approvals.yaml').write_text(textwrap.dedent(text))
        store = TrustStore(folder.parent / 'nobody' / 'trusted.json')
        self.loaded = load_settings(folder / 'approvals.yaml', directory=folder, trust=store, named=named)
        self.open(self.loaded, **options)

    def open(self, settings, **options):
        self.workspace = open_workspace(settings, self.folder, **options)
        self.ui = RecordingUI(lambda request: True)
        self.controller = ApprovalController(self.workspace.settings.mode, policy=self.workspace.policy, ui=self.ui)
        self.files = FileTools(self.workspace.files)

    def run(self, command, **arguments):
        """Return what the model gets, and whether the approver was asked."""
        return self._call(self.workspace.shell, RUN_SHELL, {'command': command, **arguments})

    def approved(self, command):
        """Return what the model gets of a command that nothing pre-approves."""
        said, asked = self.run(f'true "$(id)"; {command}')
        assert asked, said
        return said

    def use(self, name, **arguments):
        """The same for a file tool."""
        return self._call(self.files[name], name, arguments)

    def _call(self, tool, name, arguments):
        asked = len(self.ui.requests)
        try:
            said = asyncio.run(execute_tool(tool, name, arguments, self.controller))
        except (ApprovalRefused, PermissionError) as error:
            said = str(error)
        return said, len(self.ui.requests) > asked

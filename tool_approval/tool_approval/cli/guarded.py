"""Open the guarded tools of a directory, with the settings, the log and the remembered approvals that `run` uses."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tool_approval.audit.jsonl import JsonlAuditSink, load_key
from tool_approval.core.controller import ApprovalController
from tool_approval.core.errors import AuditError
from tool_approval.core.memory import ApprovalMemory
from tool_approval.core.protocols import ApprovalUI, Presenter
from tool_approval.settings.files import LoadedSettings, SettingsAudit, effective, load_settings, with_defaults
from tool_approval.settings.workspace import Workspace, open_workspace
from tool_approval.storage import FileApprovalStore
from tool_approval.storage.private_file import default_path, make_private_folder
from tool_approval.tools.file_sandbox import FileTools

from .output import Output


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """Guarded tools of one directory, and the controller that decides about their calls."""

    loaded: LoadedSettings
    """Settings of the directory; the preset `default` if there is no file."""
    workspace: Workspace
    """The tools."""
    controller: ApprovalController
    """Decides about calls, asks, and writes the log."""
    files: FileTools
    """The file tools, whose presenters the controller has."""


@contextmanager
def open_guarded(
    directory: Path,
    *,
    make_ui: Callable[[ApprovalMemory, Mapping[str, Presenter]], ApprovalUI | None],
    config: str | None = None,
    caches: bool = True,
) -> Generator[Guarded]:
    """Open the tools of a directory, and end their background processes and close their log afterwards.

    Args:
        directory: Absolute path of the directory.
        make_ui: Function that makes the UI for questions, given the memory and the presenters.
        config: Settings file that the user named, which is therefore trusted; `None` to look in the directory.
        caches: Whether to create cache folders for commands.

    Raises:
        ApprovalError: The settings, the OS sandbox, the log or the remembered approvals cannot be used.
        RuntimeError: There is no home directory.
    """
    named = None if config is None else os.path.abspath(config)
    loaded = with_defaults(load_settings(named, directory=directory, named=named is not None))
    settings = effective(loaded)
    state = default_path().parent
    memory = ApprovalMemory(FileApprovalStore(loaded.directory, state / 'approvals.json'))
    log = state / 'audit' / 'decisions.jsonl'
    try:
        make_private_folder(log.parent)
    except OSError as error:
        raise AuditError(str(log.parent), error.strerror or str(error)) from None
    with closing(JsonlAuditSink(log, key=load_key(state / 'keys' / 'audit.key'))) as sink:
        workspace = open_workspace(loaded, protected=[state], caches=caches)
        files = FileTools(workspace.files)
        presenters = files.presenters
        controller = ApprovalController(
            settings.mode,
            policy=settings.policy,
            ui=make_ui(memory, presenters),
            memory=memory,
            audit=SettingsAudit(sink, loaded),
            presenters=presenters,
            log_unasked=settings.audit.unasked,
        )
        try:
            yield Guarded(loaded=loaded, workspace=workspace, controller=controller, files=files)
        finally:
            workspace.shell.end_conversation()


def open_chosen(options: argparse.Namespace, stack: ExitStack, output: Output, *, caches: bool = True) -> Guarded:
    """Open the tools of a command with the options `--cwd`, `--config`, `--inbox` and `--never-ask`.

    Raises:
        UsageError: The directory does not exist.
        ApprovalError: As for `open_guarded`.
    """
    from .judging import existing_directory

    make_ui = partial(chosen_ui, options, stack)
    directory = existing_directory(options.cwd)
    guarded = stack.enter_context(open_guarded(directory, make_ui=make_ui, config=options.config, caches=caches))
    if not guarded.loaded.trusted:
        output.note(f'{guarded.loaded.source} is not trusted, so it can only make rules stricter')
    return guarded


def chosen_ui(
    options: argparse.Namespace, stack: ExitStack, memory: ApprovalMemory, presenters: Mapping[str, Presenter]
) -> ApprovalUI | None:
    """Return the UI that a command's options choose, or `None` for `--never-ask`. `stack` closes the inbox."""
    # Imported here, because most commands need no question.
    if options.never_ask:
        return None
    if options.inbox:
        from tool_approval.inbox import Inbox, InboxUI
        from tool_approval.inbox.stores import SQLiteStore

        return InboxUI(stack.enter_context(Inbox(SQLiteStore())))
    from tool_approval.ui.terminal import TerminalUI

    return TerminalUI(memory=memory, presenters=presenters)

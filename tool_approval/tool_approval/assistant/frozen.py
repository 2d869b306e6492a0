"""A directory in which commands can make nothing: what to say of it at the start, and beside a result that failed."""

from __future__ import annotations

import os
from pathlib import Path

from tool_approval.os_sandbox.mounts import FROZEN
from tool_approval.settings import Workspace
from tool_approval.settings.files import NAMES

READ_ONLY = 'Read-only file system'
"""What programs call it, `strerror(EROFS)`; commands run in the locale C or in that of the user."""

RESULT = (
    'The OS sandbox lets commands make, rename or delete nothing directly in {}; files that are there, and folders below, '
    'can be written. The file tools are not limited by that.'
)
"""For the model and the person, where a command failed and said so."""


def notes_of(workspace: Workspace) -> tuple[str, ...]:
    """The notes of a workspace, that on its own directory in words that fit it."""
    short = _short(workspace.directory)
    return tuple(
        short if short is not None and _is_frozen_note(note, workspace.directory) else note for note in workspace.notes
    )


def reasons_of(workspace: Workspace) -> dict[str, str]:
    """What to add to the result of a command that failed, by the text that it has then."""
    is_frozen = any(_is_frozen_note(note, workspace.directory) for note in workspace.notes)
    return {READ_ONLY: RESULT.format(workspace.directory)} if is_frozen else {}


def _is_frozen_note(note: str, directory: Path) -> bool:
    return note.startswith(f'{FROZEN} {directory} while ')


def _short(directory: Path) -> str | None:
    """What lifts it; `None` where nothing is missing, because a symbolic link is the reason."""
    missing = [] if os.path.lexists(directory / '.git') else ['.git (git init)']
    # Where there is no settings file, none may be made under any of its names; one of them lifts that.
    if not any(os.path.lexists(directory / name) for name in NAMES):
        missing.append(NAMES[0])
    if not missing:
        return None
    return f'commands cannot make or delete anything directly here without {" and ".join(missing)}'

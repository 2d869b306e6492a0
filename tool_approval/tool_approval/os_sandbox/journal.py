"""Note on disk which command is running, and sweep after it, also if this process dies and the next one starts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tool_approval.storage.private_file import make_private_folder

from .before import Before
from .git_forms import inside
from .sweep import sweep
from .tree import Tree


class Journal:
    """The note of a command that is running. Its lock lets only one command at a time write to a folder."""

    def __init__(self, state: str, path: str) -> None:
        """Open and lock the journal.

        Raises:
            OSError: The journal cannot be made or opened.
            BlockingIOError: A command that runs now has the journal.
        """
        self._state = state
        self._is_own = False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise

    @classmethod
    def of(cls, state: str, written: str) -> Journal:
        """Open the journal of a folder that a command writes to, in the user's state folder."""
        folder = Path(state, 'sweeps')
        make_private_folder(folder)
        return cls(state, f'{folder}/{hashlib.sha256(os.fsencode(written)).hexdigest()[:32]}.json')

    def write(self, before: Before) -> None:
        """Note what was there before a command that starts now."""
        with open(self._file, 'wb', closefd=False) as file:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(asdict(before)).encode())
        os.fsync(self._file)
        self._is_own = True

    def finish(self, tree: Tree) -> tuple[str, ...]:
        """Sweep after the command that is noted, if there is one. The command must have ended.

        Returns:
            Lines for the user and the model about what was moved away, and what they should know.

        Raises:
            OSError: Something could not be checked or moved. The note stays, so that it is tried again later.
        """
        noted = os.pread(self._file, os.fstat(self._file).st_size, 0)
        try:
            before = Before(**json.loads(noted)) if noted else None
        except (TypeError, ValueError):
            # The process died while it wrote the journal, so the command did not start.
            before = None
        lines = () if before is None else sweep(before, self._state, tree, is_late=not self._is_own)
        os.truncate(self._file, 0)
        return lines

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._file)


def finish_all(state: str) -> tuple[str, ...]:
    """Sweep after every command whose process died, and return lines about it for the user.

    Raises:
        OSError: A journal cannot be opened, or something could not be moved.
    """
    found: list[str] = []
    for path in inside(os.path.join(state, 'sweeps')):
        with suppress(BlockingIOError):
            journal = Journal(state, path)
            try:
                found += journal.finish(Tree())
            finally:
                journal.close()
    return tuple(found)

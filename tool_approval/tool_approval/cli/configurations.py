"""Which configuration judges a call: the one it brings, or the file of its directory. Each is compiled once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tool_approval.canonical import canonical_json
from tool_approval.errors import NotCanonicalError
from tool_approval.settings.files import load_settings
from tool_approval.settings.reading import read_settings

from .judging import Judge
from .problems import UsageError

_KEPT: Final = 64
"""Chosen: lines of a batch that alternate between more configurations are compiled anew."""


class Configurations:
    """The configurations of one process."""

    def __init__(self, named: str | None, tell: Callable[[str], None]) -> None:
        """Read nothing yet.

        Args:
            named: The file from the command line; `None` for the one in each directory.
            tell: Told of a file that is not trusted, once for each.
        """
        self._named = None if named is None else os.path.abspath(named)
        self._tell = tell
        self._of_text = lru_cache(maxsize=_KEPT)(_compiled)
        self._of_directory = lru_cache(maxsize=_KEPT)(self._loaded)

    def judge_for(self, directory: str | None = None, config: Mapping[str, Any] | None = None) -> Judge:
        """The judge of a call.

        Args:
            directory: The working directory, relative to the process's; that one if `None`.
            config: What the call brings, in the shape of `approvals.yaml`; the file if `None`.

        Raises:
            UsageError: The directory is none, or the configuration is no JSON.
            ApprovalError: The configuration has a mistake, or what it needs is not installed.
        """
        folder = existing_directory(directory)
        if config is None:
            return self._of_directory(folder)
        try:
            return self._of_text(canonical_json(config), folder)
        except NotCanonicalError as error:
            raise UsageError(f'`config` cannot be read: {error.problem}') from None

    def _loaded(self, folder: Path) -> Judge:
        loaded = load_settings(self._named, directory=folder, named=self._named is not None)
        if not loaded.trusted:
            self._tell(
                f'{loaded.source} is not trusted ({loaded.why_untrusted}): until it is, it only tightens the defaults, '
                'and `explain` judges as if it were; `tool-approval trust` shows what it would allow'
            )
        return Judge(loaded.settings, folder, source=loaded.source)


def existing_directory(path: str | None) -> Path:
    """A directory, absolute.

    Raises:
        UsageError: There is none.
    """
    folder = os.path.abspath(path or '.')
    if '\0' in folder or not os.path.isdir(folder):
        raise UsageError(f'`{folder}` is no directory')
    return Path(folder)


def _compiled(text: str, folder: Path) -> Judge:
    return Judge(read_settings(json.loads(text)), folder)

"""Which configuration judges a call: the one it brings, or the file of its directory. Each is compiled once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.settings.files import load_settings
from tool_approval.settings.plain import plain_settings

from .judging import Judge
from .problems import UsageError

if TYPE_CHECKING:
    from tool_approval.core.config import LineOf
    from tool_approval.settings.model import Settings

_KEPT: Final = 64
"""Chosen: lines of a batch that alternate between more configurations are compiled anew."""

_NO_FILE: Final = (
    '{} has no settings file, so everything is asked about, in a root called `workspace`; `tool-approval run` has defaults '
    'of its own there, under which the directory may be read'
)


class Configurations:
    """The configurations of one process."""

    def __init__(self, named: str | None, tell: Callable[[str], None]) -> None:
        """Read nothing yet.

        Args:
            named: The file from the command line; `None` for the one in each directory.
            tell: Told, once for each directory, that a file is not trusted, or that there is none.
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
        loaded = load_settings(self._named, directory=folder, named=self._named is not None, read=_read)
        if loaded.source is None:
            self._tell(_NO_FILE.format(folder))
        elif not loaded.trusted:
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
    return Judge(_read(json.loads(text)), folder)


def _read(document: Mapping[str, Any], *, source: str | None = None, line_of: LineOf = lambda path: None) -> Settings:
    plain = plain_settings(document)
    if plain is not None:
        return plain
    # Here: its import takes longer than everything else that is done for one call.
    from tool_approval.settings.reading import read_settings

    return read_settings(document, source=source, line_of=line_of)

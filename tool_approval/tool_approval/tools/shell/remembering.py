"""What an approval wider than exact may name: one plain command's program and sub-command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .explanation import Part
from .options import find_hit
from .programs import HAS_SUB_COMMANDS, TWO_LEVELS
from .runners import runner_words
from .words import Command
from .wrappers import unwrap

_SUB_COMMAND: Final = re.compile(r'[a-z][a-z0-9:_-]*')


def remembered_words(commands: Sequence[Command], parts: Sequence[Part]) -> tuple[str, ...] | None:
    """The program and sub-command of a line that is one simple command and nothing else.

    No redirection, assignment or substitution, no option from the table, nothing that runs other commands: what is
    remembered for `git fetch` must never let `git fetch --upload-pack=...` run.
    """
    if len(commands) != 1 or len(parts) != 1 or parts[0].kind != 'command' or parts[0].decision != 'ask':
        return None
    [command] = commands
    words = command.words
    if command.redirects or command.assignments or command.is_fed or not all(word.is_fixed for word in words):
        return None
    if len(words) < 2 or words[0].value not in HAS_SUB_COMMANDS or unwrap(words) is not None or runner_words(words):
        return None
    names = (words[0].value, words[1].value)
    if not _SUB_COMMAND.fullmatch(names[1]) or find_hit(words) is not None:
        return None
    if names in TWO_LEVELS:
        if len(words) < 3 or not _SUB_COMMAND.fullmatch(words[2].value):
            return None
        return (*names, words[2].value)
    return names

"""Find which access beyond the base profile the words of a command show that it needs."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from tool_approval.os_sandbox.access import AccessName

from .entries import plain_program
from .labels import LabelledCommand, label
from .names import alternatives, program_name, same_program
from .rules import stands_in
from .unlisted import SINKS, find_unlisted, may_cancel, stem
from .words import Word, fixed

_DATA: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name('needs.toml').read_text(encoding='utf-8'))
_EXPLAINS: Final = frozenset({'--help', '--version'})
_LAST: Final = frozenset({'cp', 'install', 'ln'})
"""Programs that write only to the last operand, or where the option `--target-directory` says."""
_CLIENTS: Final = frozenset({'curl', 'nc', 'ncat', 'wget'})
_HOST: Final = r'(?:https?://)?(?:localhost|0\.0\.0\.0|127(?:\.\d{1,3}){3}|\[?::1\]?)'
_LOCAL: Final = re.compile(rf'{_HOST}(?::\d+)?(?:[/?#].*)?', re.DOTALL)
_LOCAL_START: Final = re.compile(rf'{_HOST}(?::\d*|(?::\d+)?[/?#].*)', re.DOTALL)
"""The known part of an address whose port or path is unknown. If the rest is hostile, the command has no network."""
_NONE: Final = (re.compile('(?!)'), re.compile('(?!)'))
_RUNNERS: Final = frozenset({'npx', 'uvx'})
_TABLES: Final[Mapping[str, Sequence[tuple[str, Any]]]] = {
    'access': [(commands, frozenset(names.split())) for names, commands in _DATA['access'].items()],
    'offline': [(commands, option) for option, commands in _DATA['offline'].items()],
    'local': [(_DATA['local']['commands'], True)],
    'writes': [
        (
            row['commands'],
            [re.compile(row.get(key, other), re.DOTALL) for key, other in (('matches', ''), ('to', '(?!)'))],
        )
        for row in ({'commands': _DATA['writes']['always']}, *_DATA['writes']['if'])
    ],
}
"""Commands, with commas between them, and what a table says about them."""


def needed_access(words: Sequence[Word]) -> frozenset[AccessName]:
    """Return the access that a table lists for the first words of a command. Files that it writes are not included."""
    found: frozenset[AccessName] = next(_said('access', words), frozenset[AccessName]())
    if not found or ('network' not in found and _is_harmless(label(words))):
        return frozenset()
    return found - {'network'} if 'network' in found and _is_offline(words) else found


def _is_offline(words: Sequence[Word]) -> bool:
    """Return whether the words of a command say that it needs no network. If this is wrong, the command has none."""
    if next(_said('local', words), False):
        return len(words) > 2 and all(word.is_fixed and ':' not in word.value for word in words)
    options = [*_said('offline', words)]
    own = [*itertools.takewhile(lambda word: word.value != '--', words)]
    at = next((at for at, word in enumerate(own) if word.is_fixed and word.value in options), len(own))
    if program_name(words[0].value) in _RUNNERS:
        # The words from the program on are not the runner's own.
        return at == 1 and len(own) > 2 and not own[2].can_be_option
    is_known = all(word.is_fixed and '://' not in word.value for word in own)
    stems = [*map(stem, own[at : at + 1]), 'prefer-online']
    return at < len(own) and is_known and not any(may_cancel(word, stems) for word in own[at + 1 :])


def is_local(words: Sequence[Word]) -> bool:
    """Return whether a command only asks a server on this machine: in the OS sandbox, one of the same conversation."""
    if plain_program(program_name(words[0].value)) not in _CLIENTS:
        return False
    known = [word for word in words if word.is_fixed or word.growth == 'alike']
    local = [word for word in words if (_LOCAL if word in known else _LOCAL_START).fullmatch(word.value)]
    return bool(local) and all(word in local for word in words if '://' in word.value or word not in known)


def written_paths(words: Sequence[Word]) -> list[Word] | None:
    """Return the paths that a command writes to; `None` if it shows none.

    Returns:
        Words that name files or folders, as written. A `.` stands for files that the words do not name.
    """
    found = label(words)
    if found.entry is not None:
        named = _named(found)
        is_plain = found.entry.name == 'mktemp' and all(word.is_fixed for word in words)
        if is_plain and (not named or not found.options.isdisjoint({'-t', '--tmpdir'})):
            return [fixed('/tmp/')]
        if named:
            return [each for each in named if each.value not in SINKS]
        # `xargs` adds the operands.
        takes_files = 'writes' in found.flags and 'write' in (found.entry.operands or ())
        if takes_files and found.options.isdisjoint(_EXPLAINS):
            return [fixed('.')]
    name = plain_program(program_name(words[0].value))
    text = ' '.join([name, *(word.value for word in words[1:])])
    matches, to = next(_said('writes', words), _NONE)
    if not matches.match(text):
        return None
    if named := [path for match in to.finditer(text) for path in match.groups() if path]:
        return [fixed(path) for path in named if path != '-']
    files = [
        fixed(each.value) for each in found.labels if each.kind == 'operand' and each.holds == 'read' and each.value
    ]
    return files if name == 'sed' and files else [fixed('.')]


def only_reads(words: Sequence[Word]) -> bool:
    """Return whether a program is known to write nothing with these arguments, and to run nothing."""
    found = label(words)
    if 'runs_files' in found.flags and 'takes_data' not in found.flags:
        return False
    return _is_harmless(found) and not needed_access(words) and written_paths(words) is None


def _is_harmless(found: LabelledCommand) -> bool:
    """Return whether a command only reads, as far as its words are known."""
    if found.entry is None:
        return False
    is_reader = found.flags.isdisjoint({'writes', 'never'})
    return is_reader and find_unlisted(found.words, named=found.sub_at) is None


def _named(found: LabelledCommand) -> list[Word]:
    """Return the words that the entry of a program calls written."""
    assert found.entry is not None, 'the caller has checked it'
    named = [
        each.word if each.value is None or not each.word.is_fixed else fixed(each.value)
        for each in found.labels
        if each.holds == 'target' or (each.holds == 'write' and each.kind in ('operand', 'option', 'value'))
    ]
    if found.entry.name in _LAST and not any(each.holds == 'target' for each in found.labels):
        return named[-1:]
    return named


def _said(table: str, words: Sequence[Word]) -> Iterator[Any]:
    """Yield what a table says about a command; what it says about more words comes first."""
    rows = _rows(same_program(plain_program(program_name(words[0].value))), table)
    return (value for first, value in rows if stands_in(first, words) == 'yes')


@lru_cache(maxsize=256)
def _rows(program: str, table: str) -> Sequence[tuple[tuple[str, ...], Any]]:
    """Return the rows of a table for a program, in all spellings, longer commands first."""
    # The spellings of the commands of all programs take longer than judging a command.
    found = [
        (words, value)
        for commands, value in _TABLES[table]
        for command in commands.split(',')
        if command.split()[:1] == [program]
        for words in alternatives(tuple(command.split()))
    ]
    return sorted(found, key=lambda row: -len(row[0]))

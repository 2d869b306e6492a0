"""Find which access beyond the base profile the words of a command show that it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from .labels import LabelledCommand, label
from .names import program_name
from .unlisted import SINKS, find_unlisted
from .words import Word, fixed

_ALWAYS: Final = re.compile('')
_IF_UNCHECKED: Final = re.compile(r'(?!.*--(?:check|dry-run|list)\b)', re.DOTALL)
_WRITES: Final[Mapping[str, re.Pattern[str]]] = {
    'sed': re.compile(r'.* -(?:[nErsuz]*i|-in-place)', re.DOTALL),
    'perl': re.compile(r'.* -[acFlnp0]*i', re.DOTALL),
    'find': re.compile(r'.* -(?:delete|fprint|fprintf|fls)\b', re.DOTALL),
    'tar': re.compile(r'tar -{0,2}(?:[a-zA-Z]*[xcru]|extract|get|create|append|update)'),
    'prettier': re.compile(r'.* (?:-w|--write)\b', re.DOTALL),
    'eslint': re.compile(r'.* --fix\b', re.DOTALL),
    'ruff check': re.compile(r'.* --fix', re.DOTALL),
    'gofmt': re.compile(r'.* -w\b', re.DOTALL),
    'gcc': re.compile(
        r'(?!.* (?:-E|-fsyntax-only|-MM?|-v|-###|--version|--help|-dump\S*|-print\S*)(?: |$)).* ', re.DOTALL
    ),
    'pip install': re.compile(r'.* (?:-e|--editable)\b', re.DOTALL),
    **dict.fromkeys(('cargo fmt', 'cargo fix', 'go fmt'), _IF_UNCHECKED),
    **dict.fromkeys(
        (
            'cargo add', 'cargo remove', 'cargo update', 'cargo init', 'cargo new', 'go get', 'go mod init',
            'go mod tidy', 'csplit', 'ctags', 'git clone', 'git init', 'hg add', 'hg commit', 'hg pull', 'hg update',
            'jj new', 'patch', 'perf record', 'ruff format', 'svn add', 'svn commit', 'unzip', 'uv venv', 'wget',
            'npm ci', 'npm init', 'npm install', 'npm uninstall', 'npm update', 'pip download',
            'pnpm add', 'pnpm install', 'pnpm remove', 'poetry add', 'poetry lock', 'poetry remove', 'uv add',
            'uv lock', 'uv remove', 'uv sync', 'yarn add', 'yarn install', 'yarn remove',
        ),
        _ALWAYS,
    ),
}  # fmt: skip
"""Programs and sub-commands that write to files, if the pattern matches the beginning of the command."""
_EXPLAINS: Final = frozenset({'--help', '--version'})
_LAST: Final = frozenset({'cp', 'install', 'ln', 'rsync', 'scp'})
"""Programs that write only to the last operand, or where the option `--target-directory` says."""


def written_paths(words: Sequence[Word]) -> list[Word] | None:
    """Return the paths that a command writes to; `None` if it shows none.

    Args:
        words: The words of a command whose program name is known.

    Returns:
        Words that name files or folders, as written. A `.` stands for files that the words do not name.
    """
    found = label(words)
    if found.entry is None or found.changes_nothing:
        return None
    named = _named(found)
    if named:
        return [each for each in named if each.value not in SINKS]
    text = ' '.join([program_name(words[0].value), *(word.value for word in words[1:])])
    pattern = _WRITES.get(found.entry.name)
    if pattern is not None and pattern.match(text) is not None:
        files = [
            fixed(each.value) for each in found.labels if each.kind == 'operand' and each.holds == 'read' and each.value
        ]
        return files if found.entry.name in ('sed', 'perl') and files else [fixed('.')]
    # `xargs` adds the operands.
    takes_files = {'writes'} <= found.flags and 'write' in (found.entry.operands or ())
    return [fixed('.')] if takes_files and found.options.isdisjoint(_EXPLAINS) else None


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


def only_reads(words: Sequence[Word]) -> bool:
    """Return whether a program is known to write nothing with these arguments, and to run nothing.

    Args:
        words: The words of a command whose program name is known.
    """
    found = label(words)
    if found.entry is None or found.flags & {'writes', 'never'} or found.entry.needs - {'network'}:
        return False
    if 'runs_files' in found.flags and 'takes_data' not in found.flags:
        return False
    return find_unlisted(words, named=found.sub_at) is None and written_paths(words) is None

"""Read `programs.toml`: what is known of programs and of their options."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

_DATA: Final = tomllib.loads(Path(__file__).with_name('programs.toml').read_text(encoding='utf-8'))
_NEVER: Final = '(?!)'
_WITH_VALUE: Final = re.compile(r'--[\w-]+=')
"""A long option that has its value, and takes no other word."""


def _by_name(section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of each program; of programs that are listed together, the same."""
    return ((name, fields) for names, fields in _DATA[section].items() for name in names.split())


def _pattern(given: str | list[str]) -> str:
    return given if isinstance(given, str) else '|'.join(given)


def option_name(text: str) -> str:
    """The name of an option, without its dashes and its value: `javaagent` of `-javaagent:x`."""
    return re.split('[=:,.]', text.lstrip('-'), maxsplit=1)[0]


def plain_name(name: str) -> str:
    """A name as it is compared: `outDir`, `out-dir` and `OUT_DIR` are one to some program."""
    return name.replace('-', '').replace('_', '').casefold()


@dataclass(frozen=True, kw_only=True)
class UnsafeOptions:
    """The options of one program that run something or write somewhere. A long one is met by every abbreviation."""

    short: str = ''
    """Letters."""
    valued: str = ''
    """Letters that take the rest of the word as their value."""
    long: tuple[str, ...] = ()
    """Names, as `plain_name` writes them."""
    safe: frozenset[str] = frozenset()
    """Names that only look like the shortening of a dangerous one."""
    words: frozenset[str] = frozenset()
    """Options of one dash and many letters."""
    by_sub: Mapping[str, str] = field(default_factory=dict[str, str])
    """More letters, by sub-command; with a dash in front, letters that mean something else there."""
    harmless: str | None = None
    """A pattern of options with such a value, attached or in the next word, that do no harm in spite of their names."""
    prefixes: tuple[str, ...] = ()
    """How a word begins that hands options on, or holds one that is not seen by its name."""
    one_dash: bool = False
    """Whether long options may be written with one dash, and short ones with two."""


def _unsafe(
    *, long: str = '', safe: str = '', words: str = '', prefixes: str = '', harmless: str | list[str] = '', **rest: Any
) -> UnsafeOptions:
    return UnsafeOptions(
        long=tuple(map(plain_name, long.split())),
        safe=frozenset(safe.split()),
        words=frozenset(words.split()),
        prefixes=tuple(prefixes.split()),
        harmless=_pattern(harmless) or None,
        **rest,
    )


Kind = Literal['flag', 'takes', 'attached', 'unknown', 'operand']
"""An option that takes no other word, one that takes the next, one with its value, one that is not known, or none."""


@dataclass(frozen=True, kw_only=True)
class OptionSpec:
    """The options of a program, or of a sub-command, that are known well enough to step over, as patterns."""

    flags: str = _NEVER
    """Those that take no other word."""
    valued: str = _NEVER
    """Those that take the next word, whatever it looks like."""
    attached: str = _NEVER
    """How a word begins whose rest is a value; the last character that it matches is the first of the value, or `=`."""
    has_end: bool = True
    """Whether `--` ends the options."""
    texts: int = 0
    """How many of the first operands are no path, but a pattern or a script."""
    instead: str = _NEVER
    """Options that give the pattern, so that the first operand is none."""
    refused: str = _NEVER
    """Options with which operands are no paths at all."""
    paths_first: bool = False
    """Whether nothing behind the first option is a path to look into."""

    def kind(self, text: str) -> Kind:
        """What a word is, if it stands where an option may."""
        if re.fullmatch(self.flags, text):
            return 'flag'
        if not text.startswith('-') or text == '-':
            return 'operand'
        if re.fullmatch(self.valued, text):
            return 'takes'
        return 'attached' if self.attached_value(text) or _WITH_VALUE.match(text) else 'unknown'

    def attached_value(self, text: str) -> re.Match[str] | None:
        """The option at the beginning of a word, up to the first character of its value or to the `=`."""
        return re.match(self.attached, text, re.DOTALL)


def option_spec(
    *, flags: str = '', valued: str = '', optional: str = '', long: str = '', long_valued: str = '',
    flag_pattern: str | list[str] = '', valued_pattern: str | list[str] = '', attached_pattern: str = '',
    has_git_flags: bool = False, **rest: Any,
) -> OptionSpec:  # fmt: skip
    """An `OptionSpec` of the letters of flags and of options with a value, the names of both, and more patterns.

    Args:
        flags: Letters.
        valued: Letters of options that take the rest of the word, or the next word.
        optional: Letters of options whose value, if any, is attached.
        long: Names.
        long_valued: Names of options with a value.
        flag_pattern: More flags.
        valued_pattern: More options with a value.
        attached_pattern: How more words begin whose rest is a value.
        has_git_flags: Whether the flags that most sub-commands of git have are among them.
        **rest: Other fields.
    """
    cluster = f'-[{flags}]*' if flags else '-'
    names, values = ('|'.join(each.split()) for each in (long, long_valued))
    letter = f'{cluster}[{valued}]' if valued else ''
    name = f'--(?:{values})' if values else ''
    return OptionSpec(
        flags=_any(f'-[{flags}]+' if flags else '', f'--(?:{names})' if names else '',
                   _pattern(_DATA['git_flags']) if has_git_flags else '', _pattern(flag_pattern)),
        valued=_any(letter, name, _pattern(valued_pattern)),
        attached=_any(letter and f'{letter}.', f'{cluster}[{optional}].*' if optional else '', name and f'{name}=',
                      attached_pattern),
        **rest,
    )  # fmt: skip


def _any(*patterns: str) -> str:
    return '|'.join(filter(None, patterns)) or _NEVER


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """The options that a program takes before the command that it runs, and how it runs it."""

    spec: OptionSpec
    """Its options."""
    operands: int = 0
    """Operands before the command."""
    is_transparent: bool = True
    """Whether the command decides alone: the wrapper adds nothing to it."""
    appends: bool = False
    """Whether arguments are added that stand nowhere in the line."""


def _wrapper(*, operands: int = 0, is_transparent: bool = True, appends: bool = False, **options: Any) -> Wrapper:
    return Wrapper(spec=option_spec(**options), operands=operands, is_transparent=is_transparent, appends=appends)


INERT: Final = frozenset(_DATA['inert'].split())
"""Programs that read and print: none of their options runs or writes anything."""
RESPONSE_FILES: Final = frozenset(_DATA['response_files'].split())
"""Programs that put the words of a file in the place of `@file`."""
RUNS_FILES: Final = frozenset(_DATA['runs_files'].split())
"""Programs that execute files of the working tree: tests, scripts, build files, hooks."""
RUNS_FILES_BY_SUB: Final = {name: frozenset(subs.split()) for name, subs in _DATA['runs_files_by_sub'].items()}
"""Sub-commands that do, by program."""
SAME_ENTRY: Final = {name: program for program, names in _DATA['same'].items() for name in names.split()}
"""Programs with the options of another."""
HANDED_ON: Final = {name: tuple(to.split()) for names, to in _DATA['handed_on'].items() for name in names.split()}
"""Programs that hand on what stands behind `--`, and to which programs as a rule."""
UNSAFE: Final = {name: _unsafe(**fields) for name, fields in _by_name('unsafe')}
"""Options that run something or write somewhere."""
OPTION_SPECS: Final = {name: option_spec(**fields) for name, fields in _by_name('known')}
"""Options that are known well enough to step over."""
GIT: Final = {name: option_spec(**fields) for name, fields in _by_name('known_git')}
"""The same of sub-commands of git."""
NO_PATH: Final = {
    name: {option: pattern for options, pattern in fields.items() for option in options.split()}
    for name, fields in _by_name('no_path')
}
"""Options whose value is no path, and a pattern of what it may be."""
WRAPPERS: Final = {name: _wrapper(**fields) for name, fields in _by_name('wrapper')}
"""Programs that run the command they are given."""

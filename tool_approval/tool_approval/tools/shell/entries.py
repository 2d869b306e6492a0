"""Read the entries in `programs/*.toml`, which describe the options and operands of programs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from .names import guarded_name, program_name, trusted_name

SOURCES: Final = Path(__file__).with_name('programs')
"""Folder of the entries."""
Kind = Literal['text', 'read', 'write', 'target', 'command', 'script', 'code', 'context', 'rest']
"""Kind of a value or operand. `text` is neither a path nor a command. `read` is a path to read, and `write` a path to
write. `target` is where a program such as `cp` writes, for example the value of `--target-directory`. `command` is a
command, `script` is a command line for a shell, and `code` is code in another language. A `context` value sets the
directory, user, rights or settings of the program. A `rest` value and all words after it are a command."""

_ROLES: Final[Mapping[str, Kind | None]] = {'flags': None, **{kind: kind for kind in get_args(Kind)}}
_BOOLEANS: Final[Mapping[str, str]] = {
    'writes': 'writing the files that its operands name is its purpose, so a rule that names it covers that',
    'sub_commands': 'the first operand is a sub-command with an entry of its own',
    'never': 'it requires approval with any arguments',
    'runs_input': 'it runs its standard input, whatever its operands are',
    'needs_operand': 'without an operand, it runs its standard input',
    'runs_files': 'it runs files of its directory, such as tests, so it requires approval after a `cd`',
    'response_files': 'it replaces `@file` with the content of the file',
    'anywhere': 'it has options that write something, but works the same in every directory',
    'takes_data': 'it runs files or has sub-commands, but no argument is the name of a program to run',
    'remembered': 'an approval for the session may cover every simple command of it: not for what removes, '
    'overwrites, sends or runs code that it is given',
    'options_first': 'words after the first operand are never options',
    'end': '`false`: `--` does not end the options',
    'plus': 'a word that begins with `+` is an option',
    'one_dash': 'long options have one dash',
    'transparent': 'if no rule matches this wrapper, only the wrapped command is judged',
    'appends': 'this wrapper adds arguments to the wrapped command that the line does not contain',
    'harmless': 'no option can run or write anything',
    'any_option': 'it only reads and prints, whatever its options are; only for programs that were audited',
}
"""Fields that are true or false."""
FIELDS: Final[Mapping[str, str]] = {
    'operands': 'kinds of the operands, in order; a `*` after the last one is for all further operands; '
    'without this field, every operand requires approval',
    'values': 'for options, a pattern that the value has to match',
    'operand_values': 'pattern for all operands, or a list by position, the last one for all further operands; '
    'a value that is unknown before the command runs matches only `.*`',
    'operands_without_first': 'options that replace the first operand, as in `grep -e`',
    'operands_only_with': 'the program takes operands only with one of these options',
    'beyond': 'options with which the program reads more than the named paths, such as links that lead elsewhere; '
    '`*` if it does so without any',
    'opens': 'pattern of code that opens other files, so that rules with `sandbox_paths` do not apply',
    'checker': 'function in `checks.py` that decides what data cannot describe',
    'like': 'entries whose options the program also accepts',
    'aliases': 'other names of the program or sub-command',
    'allowed': 'examples that run without approval if a rule allows the program, and for a wrapper `ls`, `cat`, `echo`',
    'asked': 'examples that require approval with the same rules',
    **_BOOLEANS,
}
"""Fields of an entry besides the kinds, each of which lists the options with such a value; `flags` lists options
without a value. An option may end in `=` if its value is in the same word, and in `?` if its value may be missing.
`-#` is a dash and digits."""
_INHERITED: Final = ('runs_files', 'response_files', 'one_dash')
"""Fields that sub-commands inherit."""
_OPTION_LISTS: Final = ('operands_without_first', 'operands_only_with', 'beyond')
"""Fields that contain a list of options."""
_TABLE: Final = re.compile(r'^\[(?:"([^"\n]+)"|([^".\n]+))\]$', re.MULTILINE)
"""Header of an entry. A test compares what is read with what `tomllib` reads from the whole file."""
_ALIASES: Final = re.compile(r"""^aliases = ('{3}|"{3}|'|")(.*?)\1""", re.MULTILINE | re.DOTALL)
_OPTION: Final = re.compile(r'-.+|[!(),]', re.DOTALL)

Fields = Mapping[str, Any]
"""Fields of an entry, as written in its file."""

Place = Literal['next', 'attached', 'either']
"""Where the value of an option can be. An `attached` value can only be in the same word as the option. A `next` value
can also be in the next word. An `either` value can also be in the next word, unless that word may be an option."""


class OptionRole(NamedTuple):
    """The values that an option takes."""

    kind: Kind | None
    """Kind of the option's value; `None` for a flag."""
    place: Place = 'next'
    """Whether the option's value can be in the next word; see `Place`."""
    allowed: re.Pattern[str] | None = None
    """Pattern of safe values; `None` if the kind alone determines whether a value is safe."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Entry of a program or sub-command."""

    name: str
    """Name of the program, followed by the words of the sub-command."""
    options: Mapping[str, OptionRole]
    """Options by name, as written in a command but without `=`."""
    operands: tuple[Kind, ...] | None
    """Kinds of the operands; `None` if the entry does not list them."""
    has_more: bool
    """Whether the last kind applies to all further operands."""
    listed: Mapping[str, frozenset[str]]
    """Lists of options, by the name of the field. In the field `beyond`, `*` means all options."""
    flags: frozenset[str]
    """Names of the boolean fields that are true."""
    operand_values: tuple[re.Pattern[str], ...]
    """Patterns of safe operands, in order. The last pattern applies to all further operands."""
    opens: re.Pattern[str] | None
    """Pattern that matches code that opens further files."""
    checker: str | None
    """Name of an additional check for the arguments."""


class Entries:
    """All entries. Each entry is parsed when it is first used."""

    def __init__(self, tables: Mapping[str, str]) -> None:
        """Take the TOML table of each entry, by name."""
        self._fields = _Tables(tables)
        self._aliases = _aliases(tables)
        self._built: dict[str, Entry] = {}

    def program(self, text: str) -> Entry | None:
        """Return the entry for a program's name or path. For example, `/usr/bin/python3.11` has the entry `python`."""
        name = 'ld.so' if _LOADER.fullmatch(program_name(text)) else program_name(text)
        return None if name.startswith('_') else self.find(name) or self.find(plain_program(name))

    def is_listed(self, text: str) -> bool:
        """Return whether `text` is exactly the name of an entry, or the path of a system program with such a name.

        Attack: `timeout0 5 ls`, and `ln -s /usr/bin/env echo; x=rm; ./echo $x`, where `./echo` is a link to `env`.
        """
        name = trusted_name(text)
        return name is not None and (name in self._fields or name in self._aliases)

    def below(self, entry: Entry) -> Iterator[Entry]:
        """Yield the entries of all sub-commands."""
        for name in self._fields:
            if name.startswith(f'{entry.name} ') and (found := self.find(name)) is not None:
                yield found

    def find(self, name: str) -> Entry | None:
        """Return the entry of a program, sub-command or fragment.

        Raises:
            ValueError: The entry is invalid.
        """
        name = self._aliases.get(name, name)
        if name not in self._fields:
            return None
        if name not in self._built:
            self._built[name] = _entry(name, self._fields)
        return self._built[name]


_LOADER: Final = re.compile(r'ld-(?:linux|musl)[\w.-]*|ld-\d[\d.]*\.so')
"""Names of the dynamic linker, which runs other programs."""
_COMPILER: Final = re.compile(
    r'(?:[\w.]+-){0,4}?(gcc|g\+\+|c\+\+|cc|cpp|clang|clang\+\+|gfortran|ld|as|nm|ar|objdump)(?:-?[\d.]+)?'
)
"""Names of compilers and similar tools. A name may begin with the target machine and end with a version."""


def plain_program(name: str) -> str:
    """Return a program's name without version and target machine: `gcc` for `x86_64-linux-gnu-gcc-12`."""
    plain = guarded_name(name)
    compiler = _COMPILER.fullmatch(plain)
    return plain if compiler is None else compiler[1]


@cache
def entries() -> Entries:
    """Return the entries of this package."""
    return Entries(read_tables(SOURCES))


def read_tables(folder: Path) -> dict[str, str]:
    """Return the entries in a folder: for each name, the text of its TOML table.

    Raises:
        ValueError: A file has something else than tables, or two entries have the same name.
    """
    found: dict[str, str] = {}
    file_of: dict[str, str] = {}
    for path in sorted(folder.glob('*.toml')):
        text = path.read_text(encoding='utf-8')
        headers = [*_TABLE.finditer(text)]
        begins = [each.start() for each in headers]
        if any(line and not line.startswith('#') for line in text[: (*begins, None)[0]].splitlines()):
            raise ValueError(f'{path.name}: the file has to begin with an entry')
        for header, begin, end in zip(headers, begins, (*begins[1:], None), strict=False):
            name = header[1] or header[2]
            if name in found:
                raise ValueError(f'{path.name}: [{name}] is also in {file_of[name]}')
            found[name], file_of[name] = text[begin:end], path.name
    return found


class _Tables(Mapping[str, Fields]):
    """Fields of entries. A table is parsed when it is first used: to parse all takes longer than to judge a command."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._parsed: dict[str, Fields] = {}

    def __getitem__(self, name: str) -> Fields:
        text = self._texts[name]
        if name not in self._parsed:
            [self._parsed[name]] = tomllib.loads(text).values()
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _aliases(texts: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in texts.items():
        parent = name.rpartition(' ')[0]
        given = _ALIASES.search(text)
        for alias in given[2].split() if given else ():
            other = f'{parent} {alias}'.strip()
            if other in found:
                raise ValueError(f'[{name}] has the alias `{alias}`, which `{found[other]}` also has')
            found[other] = name
    return found


def _entry(name: str, all_fields: Mapping[str, Fields]) -> Entry:
    fields = all_fields[name]
    if unknown := fields.keys() - FIELDS.keys() - _ROLES.keys():
        raise ValueError(f'`{unknown}` are not fields of an entry')
    kinds = _kinds(fields['operands']) if 'operands' in fields else None
    given: Fields = {'end': True, **_inherited(name, all_fields), **fields}
    options = _options(name, all_fields, ())
    listed = {key: frozenset(fields.get(key, '').split()) for key in _OPTION_LISTS}
    if unknown := frozenset({'*'}.union(*listed.values())) - {*options, '*'}:
        raise ValueError(f'`{unknown}` are not options of the entry')
    return Entry(
        name=name,
        options=options,
        operands=kinds,
        has_more=fields.get('operands', '').endswith('*'),
        listed=listed,
        flags=frozenset(key for key in _BOOLEANS if given.get(key)),
        operand_values=tuple(re.compile(each, re.DOTALL) for each in _texts(fields.get('operand_values', []))),
        opens=re.compile(fields['opens']) if 'opens' in fields else None,
        checker=fields.get('checker'),
    )


def _texts(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def _inherited(name: str, all_fields: Mapping[str, Fields]) -> Fields:
    parent = name.rpartition(' ')[0]
    if not parent or parent not in all_fields:
        return {}
    above = {**_inherited(parent, all_fields), **all_fields[parent]}
    return {key: above[key] for key in _INHERITED if key in above}


def _kinds(operands: str) -> tuple[Kind, ...]:
    kinds = operands.removesuffix('*').split()
    if not _ROLES.keys() >= {*kinds} or 'command' in kinds[:-1]:
        raise ValueError(f'`{operands}` are not the kinds of operands')
    return tuple(cast('Kind', kind) for kind in kinds)


def _options(name: str, all_fields: Mapping[str, Fields], path: tuple[str, ...]) -> dict[str, OptionRole]:
    """Return the options of an entry and of the entries in `like`. The entry's own options take precedence."""
    if name not in all_fields:
        raise ValueError(f'`like` refers to `{name}`, which has no entry')
    if name in path:
        raise ValueError(f'the `like` fields form a loop: {" like ".join((*path, name))}')
    fields = all_fields[name]
    own = _own_options(fields)
    found: dict[str, OptionRole] = {}
    for other in fields.get('like', ()):
        for option, role in _options(other, all_fields, (*path, name)).items():
            if option not in own and found.setdefault(option, role) != role:
                raise ValueError(f'the entries in `like` give `{option}` different roles')
    found.update(own)
    for options, pattern in fields.get('values', {}).items():
        for option in options.split():
            if option not in found or found[option].kind is None:
                raise ValueError(f'`values` lists the option `{option}`, which takes no value')
            found[option] = found[option]._replace(allowed=re.compile(pattern, re.DOTALL))
    return found


def _own_options(fields: Fields) -> dict[str, OptionRole]:
    own: dict[str, OptionRole] = {}
    for field_name, kind in _ROLES.items():
        for given in fields.get(field_name, '').split():
            place: Place = _PLACES.get(given[-1], 'next') if len(given) > 2 else 'next'
            option = given if place == 'next' else given[:-1]
            if not _OPTION.fullmatch(option):
                raise ValueError(f'`{given}` is not an option')
            if kind is None and given != option:
                raise ValueError(f'the flag `{given}` cannot have a value')
            if option in own:
                raise ValueError(f'`{option}` is listed twice')
            own[option] = OptionRole(kind, place=place)
    return own


_PLACES: Final[Mapping[str, Place]] = {'=': 'attached', '?': 'either'}

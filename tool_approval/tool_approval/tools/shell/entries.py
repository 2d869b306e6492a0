"""Read the entries in `programs/*.toml`, which describe the options and operands of programs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

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
_END: Final = '\n# End of the file.\n'
_ALIASES: Final = re.compile(r"""^aliases = ('{3}|"{3}|'|")(.*?)\1""", re.MULTILINE | re.DOTALL)

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
        self._fields = Tables(tables)
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
        """Return the entry of a program, sub-command or fragment."""
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
    """Return the TOML table of each entry in a folder, by the name of the entry. `test_programs.py` checks them.

    Raises:
        ValueError: A file is cut off.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob('*.toml')):
        text = path.read_text(encoding='utf-8')
        # Attack: of a file that was cut off, the entries that are left are sound, and a program without an entry may do
        # more (test_programs.py).
        if not text.endswith(_END):
            raise ValueError(f'{path.name} is cut off: it does not end with {_END!r}')
        headers = [*_TABLE.finditer(text)]
        ends = [each.start() for each in headers[1:]]
        for header, end in zip(headers, [*ends, None], strict=True):
            found[header[1] or header[2]] = text[header.start() : end]
    return found


class Tables(Mapping[str, Fields]):
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
    return {
        f'{name.rpartition(" ")[0]} {alias}'.strip(): name
        for name, text in texts.items()
        if (given := _ALIASES.search(text)) is not None
        for alias in given[2].split()
    }


def _entry(name: str, all_fields: Mapping[str, Fields]) -> Entry:
    fields = all_fields[name]
    given: Fields = {'end': True, **_inherited(name, all_fields), **fields}
    values = fields.get('operand_values', [])
    return Entry(
        name=name,
        options=_options(name, all_fields),
        operands=tuple(fields['operands'].removesuffix('*').split()) if 'operands' in fields else None,
        has_more=fields.get('operands', '').endswith('*'),
        listed={key: frozenset(fields.get(key, '').split()) for key in _OPTION_LISTS},
        flags=frozenset(key for key in _BOOLEANS if given.get(key)),
        operand_values=tuple(re.compile(each, re.DOTALL) for each in ([values] if isinstance(values, str) else values)),
        opens=re.compile(fields['opens']) if 'opens' in fields else None,
        checker=fields.get('checker'),
    )


def _inherited(name: str, all_fields: Mapping[str, Fields]) -> Fields:
    parent = name.rpartition(' ')[0]
    if not parent or parent not in all_fields:
        return {}
    above = {**_inherited(parent, all_fields), **all_fields[parent]}
    return {key: above[key] for key in _INHERITED if key in above}


def _options(name: str, all_fields: Mapping[str, Fields]) -> dict[str, OptionRole]:
    """Return the options of an entry and of the entries in `like`. The entry's own options take precedence."""
    fields = all_fields[name]
    found = {option: role for other in fields.get('like', ()) for option, role in _options(other, all_fields).items()}
    for field_name, kind in _ROLES.items():
        for given in fields.get(field_name, '').split():
            place = _PLACES.get(given[-1], 'next') if len(given) > 2 else 'next'
            found[given if place == 'next' else given[:-1]] = OptionRole(kind, place=place)
    for options, pattern in fields.get('values', {}).items():
        for option in options.split():
            found[option] = found[option]._replace(allowed=re.compile(pattern, re.DOTALL))
    return found


_PLACES: Final[Mapping[str, Place]] = {'=': 'attached', '?': 'either'}

"""Reads TOML with the standard library, and finds the line of each key, which that does not tell.

The scanner below follows the grammar of TOML 1.0 as far as a text keeps to it. A line is told only if it found the very
keys that the parser did: a wrong line is worse than none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from tool_approval.core.errors import ApprovalConfigError, Path, printable

if TYPE_CHECKING:
    from tool_approval.core.config import LineOf

MAX_CHARS = 100_000
"""Chosen: as for YAML."""

MAX_DEPTH = 16
"""Chosen: as for YAML."""

_PLACE = re.compile(r' \(at (?:line (\d+), column \d+|end of document)\)$')
"""How the messages of `tomllib` end."""

_BLANK = re.compile(r'(?:[ \t\n]|#[^\n]*)*')
_BARE_KEY = re.compile(r'[A-Za-z0-9_-]+')
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN_VALUE = re.compile(r'[^\s,\]}#]+(?: \d[^\s,\]}#]*)?')
"""Numbers, booleans and times; a date and a time may have one blank between them."""


def parse_toml(text: str, *, source: str | None) -> tuple[dict[str, Any], LineOf]:
    """The document, and a function from a path of keys to the line of the key or item there.

    Raises:
        ApprovalConfigError: No TOML, too long, or nested too deeply.
    """
    if len(text) > MAX_CHARS:
        raise ApprovalConfigError(f'longer than {MAX_CHARS} characters', source=source)
    # First, because the library needs seconds for a key of some thousand parts, and it stops the deepest nesting.
    lines = _lines(text.replace('\r\n', '\n'), source)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        place = _PLACE.search(problem)
        line = int(place[1]) if place is not None and place[1] is not None else None
        raise ApprovalConfigError(
            f'not TOML: {printable(_PLACE.sub("", problem), 200)}', source=source, line=line
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists where the scanner gave up
        raise ApprovalConfigError('not TOML: a number that is too large, or too much nesting', source=source) from None
    if set(lines) != _paths(document):
        return document, lambda path: None

    def line_of(path: Path) -> int | None:
        known = (lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines)
        return next(known, None)

    return document, line_of


def _paths(document: dict[str, Any]) -> set[Path]:
    found: set[Path] = set()
    pending: list[tuple[Path, object]] = [((), document)]
    while pending:
        path, value = pending.pop()
        for key, below in _below(value):
            found.add((*path, key))
            pending.append(((*path, key), below))
    return found


def _below(value: object) -> Iterator[tuple[str | int, object]]:
    match value:
        case dict():
            yield from cast('dict[str, object]', value).items()
        case list():
            yield from enumerate(cast('list[object]', value))
        case _:
            return


def _lines(text: str, source: str | None) -> dict[Path, int]:
    scanner = _Scanner(text)
    try:
        return scanner.document()
    except _Lost:
        return {}
    except _TooDeep:
        raise ApprovalConfigError('nested too deeply', source=source, line=scanner.line()) from None


class _Lost(Exception):
    """The scanner met what it does not know."""


class _TooDeep(Exception):
    """A key of too many parts, or a value in too many others."""


class _Scanner:
    """Walks over a text once. It stops at the first thing that is not TOML, or at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._seen = 0
        self._lines: dict[Path, int] = {}
        self._lengths: dict[Path, int] = {}

    def document(self) -> dict[Path, int]:
        """The lines of all keys and items.

        Raises:
            _Lost: It is no TOML, or not as the scanner knows it.
            _TooDeep: It is nested too deeply.
        """
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._takes('[['):
                table = self._item(self._header(), self.line())
                self._expect(']]')
            elif self._takes('['):
                table = self._header(is_whole=True)
                self._expect(']')
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._lines

    def _header(self, *, is_whole: bool = False) -> Path:
        """The table that a header names; the last item of each list on the way."""
        line = self.line()
        keys = self._keys()
        path: Path = ()
        for key in keys[:-1]:
            path = self._entered((*path, key), line)
        path = (*path, keys[-1])
        return self._entered(path, line) if is_whole else path

    def _entered(self, path: Path, line: int) -> Path:
        self._lines.setdefault(path, line)
        return (*path, self._lengths[path] - 1) if path in self._lengths else path

    def _item(self, path: Path, line: int) -> Path:
        self._lines.setdefault(path, line)
        index = self._lengths.get(path, 0)
        self._lengths[path] = index + 1
        self._lines[(*path, index)] = line
        return (*path, index)

    def _pair(self, table: Path) -> None:
        line = self.line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self._lines.setdefault(path, line)
        self._expect('=')
        self._skip(_BLANK)
        self._value(path)

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            keys.append(self._key())
            self._skip(_BLANK)
            if not self._takes('.'):
                return keys
            if len(keys) >= MAX_DEPTH:
                raise _TooDeep

    def _key(self) -> str:
        if (bare := self._match(_BARE_KEY)) is not None:
            return bare
        quoted = self._match(_STRING)
        if quoted is None:
            raise _Lost
        try:
            return str(tomllib.loads(f'key = {quoted}')['key'])
        except tomllib.TOMLDecodeError:
            raise _Lost from None

    def _value(self, path: Path) -> None:
        if len(path) > MAX_DEPTH:
            raise _TooDeep
        if self._takes('['):
            self._array(path)
        elif self._takes('{'):
            self._inline_table(path)
        elif self._match(_STRING) is None and self._match(_PLAIN_VALUE) is None:
            raise _Lost

    def _array(self, path: Path) -> None:
        index = 0
        self._skip(_BLANK)
        while not self._takes(']'):
            here = (*path, index)
            self._lines[here] = self.line()
            self._value(here)
            self._skip(_BLANK)
            self._takes(',')
            self._skip(_BLANK)
            index += 1

    def _inline_table(self, path: Path) -> None:
        self._skip(_BLANK)
        while not self._takes('}'):
            self._pair(path)
            self._skip(_BLANK)
            self._takes(',')
            self._skip(_BLANK)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._match(pattern)

    def _takes(self, token: str) -> bool:
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _expect(self, token: str) -> None:
        self._skip(_BLANK)
        if not self._takes(token):
            raise _Lost

    def line(self) -> int:
        """Where it is, from 1."""
        self._line += self._text.count('\n', self._seen, self._at)
        self._seen = self._at
        return self._line

"""Read YAML and record the line of each value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import yaml
from yaml.reader import ReaderError

from .errors import ApprovalConfigError, Path, dotted, printable

MAX_CHARS = 100_000
"""Maximum length of a document, enough for thousands of rules. PyYAML takes a second or two to parse so much."""

NOT_TEXT = object()
"""Placeholder for dates, unusual numbers and other values that are never valid in a configuration. Validation rejects
the placeholder. PyYAML would need minutes to convert some of these values."""

_NUMBER = re.compile(r'-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?')
"""Matches numbers that all YAML readers understand alike. In YAML, `010` is eight, `1:30` is ninety, `1_0` is ten."""

MAX_DEPTH = 16
"""Maximum nesting depth, four times the depth needed. PyYAML takes a minute to read thousands of nested levels."""


def parse_yaml(text: str, *, source: str | None) -> tuple[dict[str, Any], Callable[[Path], int | None]]:
    """Return the document, and a function that returns the line number of the key or item at a key path.

    Values are strings, booleans, plain decimal numbers, `None`, lists, mappings and `NOT_TEXT`.

    Raises:
        ApprovalConfigError: The text is not YAML or not a mapping, is too long or too deeply nested, or has a duplicate
            key, a key that is not a string, an anchor, an alias or a tag. A policy must be unambiguous.
    """
    if len(text) > MAX_CHARS:
        raise ApprovalConfigError(f'the text is longer than {MAX_CHARS} characters', source=source)
    try:
        loader = yaml.SafeLoader(text)
    except ReaderError as error:
        line = text.count('\n', 0, error.position) + 1
        raise ApprovalConfigError('not YAML: a character is not allowed', source=source, line=line) from None
    reader = _Reader(loader, source)
    return reader.document(), reader.line_of


class _Reader:
    """Builds the document from parser events, because PyYAML's later steps also expand aliases and convert dates."""

    def __init__(self, loader: yaml.SafeLoader, source: str | None) -> None:
        # The stubs lack the methods used here.
        self._loader: Any = loader
        self._source = source
        self._lines: dict[Path, int] = {}

    def line_of(self, path: Path) -> int | None:
        """Return the line of the value at `path`, or of its nearest known parent."""
        known = (self._lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._lines)
        return next(known, None)

    def document(self) -> dict[str, Any]:
        """Read the whole document. An empty document becomes an empty mapping."""
        documents: list[object] = []
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent) and documents:
                raise self._error('a second YAML document is not allowed', _line(event))
            if isinstance(event, yaml.NodeEvent):
                documents.append(self._value(event, ()))
                if not isinstance(documents[0], dict | None):
                    raise self._error(_not_a_document(documents[0]), _line(event))
        return cast('dict[str, Any]', documents[0] or {}) if documents else {}

    def _value(self, event: yaml.NodeEvent, path: Path) -> object:
        if len(path) > MAX_DEPTH:
            raise self._error('nested too deeply', _line(event), path)
        match event:
            case yaml.MappingStartEvent(anchor=None, tag=None):
                return self._mapping(path)
            case yaml.SequenceStartEvent(anchor=None, tag=None):
                return self._sequence(path)
            case yaml.ScalarEvent(anchor=None, tag=None):
                return self._scalar(event, path)
            case _:
                raise self._error('anchors, aliases and tags are not allowed', _line(event), path)

    def _mapping(self, path: Path) -> dict[str, object]:
        built: dict[str, object] = {}
        while isinstance(event := self._next(), yaml.NodeEvent):
            name = None if isinstance(event, yaml.CollectionStartEvent) else self._value(event, path)
            if not isinstance(name, str):
                raise self._error('a key must be a string; quote it', _line(event), path)
            here = (*path, name)
            if name in built:
                raise self._error('duplicate key', _line(event), here)
            self._lines[here] = _line(event)
            built[name] = self._value(self._next(), here)
        return built

    def _sequence(self, path: Path) -> list[object]:
        items: list[object] = []
        while isinstance(event := self._next(), yaml.NodeEvent):
            here = (*path, len(items))
            self._lines[here] = _line(event)
            items.append(self._value(event, here))
        return items

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> object:
        tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        match tag.removeprefix('tag:yaml.org,2002:'):
            case 'null':
                return None
            case 'bool':
                return event.value.lower() in ('yes', 'true', 'on')
            case 'str':
                return self._text(event, path)
            case 'int' | 'float' if _NUMBER.fullmatch(event.value):
                return float(event.value) if '.' in event.value else int(event.value)
            case _:
                return NOT_TEXT

    def _text(self, event: yaml.ScalarEvent, path: Path) -> str:
        try:
            # JSON writes a character beyond 16 bits as two escapes, which PyYAML does not join.
            return event.value.encode('utf-16', 'surrogatepass').decode('utf-16')
        except UnicodeDecodeError:
            raise self._error('an incomplete character', _line(event), path) from None

    def _next(self) -> Any:
        try:
            return self._loader.get_event()
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else None
            raise self._error(f'not YAML: {printable(error.problem or "", 200)}', line) from None
        except (ValueError, OverflowError):  # an escape beyond Unicode, a version of thousands of digits
            raise self._error('not YAML: a number is too large', self._loader.line + 1) from None

    def _error(self, problem: str, line: int | None, path: Path = ()) -> ApprovalConfigError:
        return ApprovalConfigError(problem, key=dotted(path), source=self._source, line=line)


def _line(event: yaml.Event) -> int:
    # The parser sets the mark of every event, although its stubs make it optional.
    return cast('yaml.Mark', event.start_mark).line + 1


def _not_a_document(value: object) -> str:
    if isinstance(value, str) and value.lower().endswith(('.yaml', '.yml', '.json')):
        return 'this is the name of a file, not a document; pass the text of the file'
    return 'the value must be a mapping of keys to values'

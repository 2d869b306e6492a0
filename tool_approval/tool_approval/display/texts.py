"""The texts of a request that a person reads, and how carefully the characters of each are to be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Any, cast

from tool_approval.core.request import ApprovalRequest

from .digest import left_out_keys
from .facts import fact_text, is_automatic
from .prose import is_prose
from .sharing import shares

_MOST_VALUES = 1_000
"""Chosen: nobody is shown all of a request with more. A container, a name and a value count as one each."""

_MOST_LEVELS = 100
"""Chosen, agents above the one that asks: five are named beside a question."""

_FILES = frozenset({'file_content', 'diff'})
"""Presentations of what stands, or will stand, in a file."""

_MOST_OPTIONS = 9
"""Where there are more, none is offered."""

_DEEPEST = 20
"""Chosen: what is nested deeper is not drawn either."""

_CODE = frozenset({
    'address', 'args', 'argv', 'bash', 'branch', 'cmd', 'code', 'command', 'commands', 'cwd', 'dest', 'destination',
    'directory', 'domain', 'email', 'exec', 'expression', 'file', 'file_name', 'file_path', 'filename', 'folder', 'host',
    'input', 'key', 'name', 'path', 'paths', 'pattern', 'program', 'python', 'query', 'regex', 'script', 'shell', 'source',
    'sql', 'stdin', 'target', 'uri', 'url', 'user',
})  # fmt: skip
"""Names, in small letters, of arguments that a program reads: each sign of theirs means something."""


class Care(IntEnum):
    """How carefully characters are looked at; more is found by the later ones."""

    PROSE = 0
    """What is written for people, or shown as the content of a file: its signs are typography."""
    LINES = 1
    """An argument of several lines, of which nobody knows whether a person or a program reads it; or a line that can
    only be a sentence."""
    CODE = 2
    """A name, a path, a command, and any other line: every sign counts."""


@dataclass
class Texts:
    """What is read of a request."""

    by_text: dict[str, Care] = field(default_factory=dict[str, Care])
    """Each text once, as carefully as its most careful place wants it, in the order of the screen."""
    is_all: bool = True
    """Whether no text of the request was left out."""

    def add(self, text: str, care: Care) -> None:
        """Read one more; an empty one is none."""
        if text:
            self.by_text[text] = max(care, self.by_text.get(text, care))


def texts_of(request: ApprovalRequest) -> Texts:
    """The texts of a request. Of very many values only some are taken: of each container the beginning and the end."""
    found = Texts()
    found.add(request.tool_name, Care.CODE)
    for level in request.lineage[-_MOST_LEVELS:]:
        found.add(level.tool_name, Care.CODE)
        found.add(level.agent_name or '', Care.CODE)
    found.is_all = len(request.lineage) <= _MOST_LEVELS
    for key in ('caller', 'toolset_id'):
        found.add(fact_text(request.metadata.get(key)), Care.CODE)
    if not is_automatic(request):
        found.add(request.description, Care.PROSE)
    found.add(request.reason or '', Care.PROSE)
    for option in request.remember_options[:_MOST_OPTIONS]:
        found.add(option.label, Care.PROSE)
    presentation = request.presentation
    contents: frozenset[str] = frozenset()
    if presentation is not None:
        whole: object = presentation.metadata.get('full_content')
        text = whole if isinstance(whole, str) else presentation.content
        is_file = presentation.type in _FILES
        if presentation.type == 'command':
            found.add(text, Care.CODE)
        else:
            found.add(text, Care.PROSE if '\n' in text else _care_of(text, is_file=is_file))
        contents = frozenset((presentation.content, text) if is_file else ())
        for key in ('path', 'cwd'):
            found.add(fact_text(presentation.metadata.get(key)), Care.CODE)
    hidden = left_out_keys(request)
    shown = {key: value for key, value in request.args.items() if key not in hidden} if hidden else request.args
    _add_within(found, shown, contents)
    return found


def _add_within(found: Texts, values: Mapping[str, Any], contents: frozenset[str]) -> None:
    """The texts of a value and of all within it, level by level: the arguments themselves come first.

    Those that are shown as the content of a file are looked at as such.
    """
    level: list[tuple[Mapping[Any, Any] | Sequence[Any], Care]] = [(values, Care.PROSE)]
    left = _MOST_VALUES
    for _ in range(_DEEPEST):
        sizes = [len(container) for container, _ in level]
        # Where a level has too many, half of what is left is kept for what is deeper in its small containers.
        granted = shares(sizes, left if sum(sizes) <= left else left // 2)
        left -= sum(granted)
        found.is_all = found.is_all and granted == sizes
        below: list[tuple[Mapping[Any, Any] | Sequence[Any], Care]] = []
        for (container, care), share in zip(level, granted, strict=True):
            for key, value in _items(container, share):
                if isinstance(key, str):
                    found.add(key, Care.CODE)
                inner = Care.CODE if care is Care.CODE or (isinstance(key, str) and key.lower() in _CODE) else care
                if isinstance(value, str):
                    found.add(value, max(inner, _care_of(value, is_file=value in contents)))
                elif isinstance(value, Mapping | list | tuple):
                    below.append((cast('Mapping[Any, Any] | Sequence[Any]', value), inner))
        level = below


def _care_of(value: str, *, is_file: bool) -> Care:
    """Attack: a command of several lines in an argument of a tool that presents nothing (test_warnings.py)."""
    line = value.removesuffix('\n')
    is_line = '\n' not in line and not is_file and not is_prose(line)
    return Care.CODE if is_line or value.startswith('#!') else Care.LINES


def _items(container: Mapping[Any, Any] | Sequence[Any], share: int) -> Iterator[tuple[object, object]]:
    """All of the items, or the first three quarters and the last ones of so many: what is drawn is of those."""
    tail = 0 if len(container) <= share else share // 4
    if isinstance(container, Mapping):
        yield from islice(container.items(), share - tail)
        if tail:
            yield from islice(container.items(), len(container) - tail, None)
    else:
        for value in container[: share - tail]:
            yield None, value
        for value in container[len(container) - tail :]:
            yield None, value

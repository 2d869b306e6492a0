"""Tell the edits that these tools made from changes by others, so that several approved edits of a file run in order.

An approval of an edit is bound to the state of the whole file. The first of two approved edits changes that state, so
the second is bound to the state before the first, if the two change different lines.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

MOST_EDITS, MOST_FILES = 50, 200
"""Maximum numbers of edits for each file, and of files, that are known. Models make far fewer edits in a response."""

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """One edit that was made."""

    before: str
    """State of the file before the edit."""
    lines: tuple[_Span, ...]
    """Positions of the changed lines in the file as it is after the newest edit."""


class OwnEdits:
    """The newest edits of each file, until another process changes the file."""

    def __init__(self) -> None:
        """Know no edits."""
        self._lock = threading.Lock()
        self._files: dict[str, tuple[str, list[_Edit]]] = {}

    def add(self, file: str, before: str, after: str, text: str, arguments: Mapping[str, Any]) -> None:
        """Record an edit that was made.

        Args:
            file: The file's key, such as `root:path`.
            before: State of the file before the edit.
            after: State of the file after the edit.
            text: Content of the file before the edit.
            arguments: The arguments of the edit.
        """
        places, growth = _places(text, arguments), len(arguments['new_text']) - len(arguments['old_text'])

        def moved(spans: Sequence[_Span]) -> tuple[_Span, ...]:
            ends = [
                [_moved(each, places, growth, is_end=bool(is_end)) for is_end, each in enumerate(span)]
                for span in spans
            ]
            return tuple((begin, end) for begin, end in ends)

        with self._lock:
            state, edits = self._files.pop(file, ('', []))
            known = [replace(each, lines=moved(each.lines)) for each in edits] if state == before else []
            known.append(_Edit(before=before, lines=moved(_lines(text, places))))
            self._files[file] = (after, known[-MOST_EDITS:])
            while len(self._files) > MOST_FILES:
                del self._files[next(iter(self._files))]

    def origin(self, file: str, state: str, text: str, arguments: Mapping[str, Any]) -> str:
        """Return the earliest state from which the file came to be as it is only by edits of other lines.

        Args:
            file: The file's key.
            state: State of the file.
            text: Content of the file.
            arguments: The arguments of an edit that is to be made.

        Returns:
            The state. Equal to `state` if another process has changed the file, or if the newest edit overlaps.
        """
        with self._lock:
            known, edits = self._files.get(file, ('', []))
        if known != state:
            return state
        lines = _lines(text, _places(text, arguments))
        for edit in reversed(edits):
            # Attack: the second edit changes what the first has written, which the approver has not seen
            # (test_own_edits.py).
            if any(ours[0] < theirs[1] and theirs[0] < ours[1] for ours, theirs in product(lines, edit.lines)):
                break
            state = edit.before
        return state


def _places(text: str, arguments: Mapping[str, Any]) -> list[_Span]:
    """Return the positions of the text to replace, as `str.replace` finds them."""

    def find() -> Iterator[_Span]:
        old, position = arguments['old_text'], 0
        while old and (position := text.find(old, position)) >= 0:
            yield position, position + len(old)
            position += len(old)

    return list(find())


def _lines(text: str, places: Sequence[_Span]) -> list[_Span]:
    """Return the positions of the whole lines around each place."""
    spans: list[_Span] = []
    for begin, end in places:
        # A place that ends with a line end does not reach into the next line.
        stop = text.find('\n', max(begin, end - 1))
        spans.append((text.rfind('\n', 0, begin) + 1, len(text) if stop < 0 else stop + 1))
    return spans


def _moved(position: int, places: Sequence[_Span], growth: int, *, is_end: bool) -> int:
    """Return where a position is after an edit. A position in a replaced text moves to one end of the new text."""
    shift = 0
    for begin, end in places:
        if end <= position:
            shift += growth
        elif begin < position:
            return end + shift + growth if is_end else begin + shift
    return position + shift

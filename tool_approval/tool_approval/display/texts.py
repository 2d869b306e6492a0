"""Collect the texts that an approver reads in a request, and decide how strictly to check each text's characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, cast

from tool_approval.core.request import ApprovalRequest

from .digest import visible_args
from .fact_texts import MOST_EXTRA_ACCESS, extra_access, fact_text, is_automatic
from .lookalikes import LONE_STROKES, Care
from .quote import shares

_LONGEST_LINE: Final = 4_000
"""Maximum number of characters in a line of prose. A longer line or command is always checked as code."""

# Letters exclude special characters of commands. Words do not begin with a dash, and contain little punctuation.
_LETTER: Final = (
    '[A-Za-z0-9\u00a3\u00a7\u00b0\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2070-\u2fff\u3041-\u9fff\ua000-\ud7ff'
    '\uf900-\ufaff\U00010000-\U0003ffff]'
)
_WORD_OF_PROSE: Final = (
    rf"""["'(\u00ab\u2018\u201c\u201e]*{_LETTER}+(?:[-'\u2019]{_LETTER}+|\({_LETTER}+\)|[.,:\u00d7\u2013][0-9]+)*"""
    r"""["').,:!?%\u00bb\u00d7\u2019\u201c\u201d\u2026]*"""
)
_PROSE: Final = re.compile(f'{_WORD_OF_PROSE}(?: (?:{_WORD_OF_PROSE}|[-+\u00b7\u00d7\u2013\u2014\u2022]))+')

_LONGEST_BEFORE: Final = 1_000
"""Maximum length of the text before a message in a command. For each quoted text, all text before it is searched."""

_COMMANDS: Final = frozenset({
    'awk', 'bash', 'cat', 'chmod', 'chown', 'copy', 'cp', 'curl', 'dd', 'del', 'delete', 'docker', 'drop', 'echo',
    'eval', 'exec', 'export', 'find', 'git', 'grep', 'insert', 'kill', 'kubectl', 'ln', 'ls', 'make', 'mkdir', 'mv',
    'npm', 'perl', 'pip', 'psql', 'python', 'python3', 'rm', 'rmdir', 'scp', 'sed', 'select', 'sh', 'source', 'ssh',
    'sudo', 'tar', 'touch', 'update', 'wget', 'zsh',
})  # fmt: skip
"""Words that, at the beginning of a text, indicate a command rather than a sentence."""

_APOSTROPHE: Final = re.compile(f'(?<={_LETTER})\u2019(?={_LETTER})')
_QUOTED: Final = re.compile('\u2018[^\u2018-\u201f]*\u2019|[\u201c\u201e][^\u201c-\u201f]*[\u201c\u201d]')

_TOKEN: Final = re.compile(r""""(?P<double>[^"]*)"|'(?P<single>[^']*)'|[^"']+|["']""")
_BEFORE_MESSAGE: Final = re.compile(
    r'(?:\A|[;&|])[ ]*'
    r'(?:(?:git|hg|jj|svn|gh|glab)[ ][^;&|<>()`$\\\n]*[ ](?:-[a-z]*m|--(?:message|title|body|notes|subject))[ =]'
    r'|echo[ ](?:-[neE]+[ ])?)\Z'
)
_NOT_SIMPLE: Final = re.compile(r'[\\#\n\r]|<<')
_NESTED: Final = re.compile(r'[`\\]|\$\(')
_EXPANDED: Final = re.compile(r'[$`\\\n]')
_QUOTE: Final = re.compile('[\u2018-\u201f\u2032-\u2037\uff02\uff07\uff40]')
_ACTIVE: Final = re.compile(r'[;|&<>(){}~*=#]')
_DASHED: Final = re.compile('(?<!\\w)[\u2010-\u2015\u2212\u2796\uff0d]+(?=[A-Za-z])')


def is_prose(text: str) -> bool:
    """Return whether a line can only be a sentence: words and blanks, no special characters of commands or paths."""
    if len(text) > _LONGEST_LINE or ' ' not in text or text.partition(' ')[0] in _COMMANDS or LONE_STROKES.search(text):
        return False
    return _PROSE.fullmatch(text) is not None and not _QUOTE.search(_QUOTED.sub('', _APOSTROPHE.sub('', text)))


def apart(command: str) -> tuple[str, list[str]]:
    """Separate messages for people, such as commit messages, from a command. Return the rest and the messages.

    A curly quotation mark can seem to begin or end a quoted text. Such a mark may make an attacker's command look
    like a message or a comment (test_prose.py). Therefore, messages are separated only if the command's quoting is
    simple. A message that has both curly quotes and special characters of the shell is not separated.
    """
    if len(command) > _LONGEST_LINE:
        return command, []
    rest, messages = '', list[str]()
    for token in _TOKEN.finditer(command):
        message = token['double'] if token['single'] is None else token['single']
        if message is None:
            if token[0] in '"\'' or _NOT_SIMPLE.search(token[0]):
                return command, []
            rest += token[0]
        elif token['double'] is not None and _NESTED.search(message):
            return command, []
        elif len(rest) <= _LONGEST_BEFORE and _BEFORE_MESSAGE.search(rest) and _is_calm(message):
            messages.append(message)
            rest += '""'
        else:
            rest += token[0]
    return rest, messages


def _is_calm(message: str) -> bool:
    if _EXPANDED.search(message) or _DASHED.search(message) or LONE_STROKES.search(message):
        return False
    return not (_QUOTE.search(message) and _ACTIVE.search(message))


_MOST_VALUES = 1_000
"""Maximum number of values to read. A container counts as one value. A name and its value count as one value."""

_MOST_LEVELS = 100
"""Maximum number of levels to read above the calling agent. A question names at most five agents."""

_FILES = frozenset({'file_content', 'diff'})
"""Types of presentations that show the present or future content of a file."""

_MOST_OPTIONS = 9
"""Maximum number of a request's `remember_options` to read. If there are more, the approver is offered none of them."""

_DEEPEST = 20
"""Maximum depth of nested values to read. Values below this depth are never drawn."""

_CODE = frozenset({
    'address', 'args', 'argv', 'bash', 'branch', 'cmd', 'code', 'command', 'commands', 'cwd', 'dest', 'destination',
    'directory', 'domain', 'email', 'exec', 'expression', 'file', 'file_name', 'file_path', 'filename', 'folder',
    'host', 'input', 'key', 'name', 'path', 'paths', 'pattern', 'program', 'python', 'query', 'regex', 'script',
    'shell', 'source', 'sql', 'stdin', 'target', 'uri', 'url', 'user',
})  # fmt: skip
"""Lower-case names of arguments that programs read, not people. Every character of these arguments matters."""


@dataclass
class Texts:
    """All texts that an approver reads in a request."""

    by_text: dict[str, Care] = field(default_factory=dict[str, Care])
    """Each text, in display order, with its check. A text that occurs several times gets the strictest check."""
    is_all: bool = True
    """Whether all texts of the request are included."""

    def add(self, text: str, care: Care) -> None:
        """Add a text, unless it is empty."""
        if text:
            self.by_text[text] = max(care, self.by_text.get(text, care))


def texts_of(request: ApprovalRequest) -> Texts:
    """Return the texts of a request. If there are too many values, only the beginning and the end of each container are
    read.
    """
    found = Texts()
    found.add(request.tool_name, Care.CODE)
    for level in request.lineage[-_MOST_LEVELS:]:
        found.add(level.tool_name, Care.CODE)
        found.add(level.agent_name or '', Care.CODE)
    found.is_all = len(request.lineage) <= _MOST_LEVELS
    for name in (request.facts.caller, request.facts.toolset_id):
        found.add(name or '', Care.CODE)
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
        for line in extra_access(request)[:MOST_EXTRA_ACCESS]:
            found.add(line, Care.CODE)
    _add_within(found, visible_args(request), contents)
    return found


def _add_within(found: Texts, values: Mapping[str, Any], contents: frozenset[str]) -> None:
    """Add to `found` all texts in nested values, level by level. The arguments come first, then the values in them.

    If a text of one line is shown as the content of a file, the text is checked like a text of several lines.
    """
    level: list[tuple[Mapping[Any, Any] | Sequence[Any], Care]] = [(values, Care.PROSE)]
    left = _MOST_VALUES
    for _ in range(_DEEPEST):
        sizes = [len(container) for container, _ in level]
        # If a level has too many values, half of the rest is kept for deeper values in its small containers.
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
    """Return how strictly to check a value.

    A value of several lines may be a command, even if the tool does not present the value as a command. Therefore,
    such a value is not checked as prose (test_warnings.py).
    """
    line = value.removesuffix('\n')
    is_line = '\n' not in line and not is_file and not is_prose(line)
    return Care.CODE if is_line or value.startswith('#!') else Care.LINES


def _items(container: Mapping[Any, Any] | Sequence[Any], share: int) -> Iterator[tuple[object, object]]:
    """Yield at most `share` items. If the container has more items, a quarter of the result comes from its end."""
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

"""One line that is written for people, in an argument or in a command, where typography is nothing special."""

from __future__ import annotations

import re
from typing import Final

from .signs import LONE_STROKES

_LONGEST: Final = 4_000
"""Chosen, in characters: a longer line or command is looked at as carefully as any."""

# No sign of a command is a letter, no dash begins a word, and of punctuation only what ends words stands within them.
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
"""Chosen, in characters before a message: what is set apart is looked for once for each quoted text."""

_COMMANDS: Final = frozenset({
    'awk', 'bash', 'cat', 'chmod', 'chown', 'copy', 'cp', 'curl', 'dd', 'del', 'delete', 'docker', 'drop', 'echo', 'eval',
    'exec', 'export', 'find', 'git', 'grep', 'insert', 'kill', 'kubectl', 'ln', 'ls', 'make', 'mkdir', 'mv', 'npm', 'perl',
    'pip', 'psql', 'python', 'python3', 'rm', 'rmdir', 'scp', 'sed', 'select', 'sh', 'source', 'ssh', 'sudo', 'tar', 'touch',
    'update', 'wget', 'zsh',
})  # fmt: skip
"""Words that a command begins with rather than a sentence."""

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
    """Whether a line can only be a sentence: words and blanks, no sign that means anything to a program or in a path."""
    if len(text) > _LONGEST or ' ' not in text or text.partition(' ')[0] in _COMMANDS or LONE_STROKES.search(text):
        return False
    return _PROSE.fullmatch(text) is not None and not _QUOTE.search(_QUOTED.sub('', _APOSTROPHE.sub('', text)))


def apart(command: str) -> tuple[str, list[str]]:
    """A command without the messages in it, and those: quoted texts for people, as of `git commit -m "..."`.

    Attack: a curly quotation mark that seems to end or to begin a quoted text, so that what is run seems to be none, or
    a comment (test_prose.py). So nothing is set apart where quoting is not simple, nor what has both such marks and
    signs of a shell.
    """
    if len(command) > _LONGEST:
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

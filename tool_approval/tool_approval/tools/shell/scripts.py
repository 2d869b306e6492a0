"""Read the code that sed, awk and shells are given, where that is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from .program_data import OPTION_SPECS
from .programs import guarded_name
from .words import UnsafeArgument, Word


@dataclass(frozen=True, kw_only=True)
class WrappedCommand:
    """What a wrapper runs."""

    words: tuple[tuple[Word, ...], ...] = ()
    """Commands, word by word."""
    scripts: tuple[str, ...] = ()
    """Commands as text for a shell."""
    is_transparent: bool = False
    """Whether what is inside decides alone: the wrapper adds nothing to it."""
    changes_cwd: bool = False
    """Whether it runs in other directories."""
    is_program: bool = False
    """Whether the wrapper does more than run others, and is judged as any program is."""
    assignments: tuple[str, ...] = ()
    """Variables that are set for it."""
    own: int = 1
    """How many words are the wrapper's: its name, its options and their values."""
    problem: str | None = None
    """Why what is inside is not fully known."""


MAX_SCRIPT: Final = 2_000
"""Chosen: a longer script is asked about unread."""

_ADDRESS: Final = r'(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?|\\\|(?:[^|\\\n]|\\.)*\|I?|\\,(?:[^,\\\n]|\\.)*,I?)'
_SED_ITEM: Final = re.compile(
    rf'(?:{_ADDRESS}(?:[ \t]*,[ \t]*(?:[+~]?\d+|{_ADDRESS}))?)?[ \t]*!?[ \t]*'
    r'(?P<command>\{|\}|[pdqlnNDPhHgGx=]|:[a-z]\w*|[bt][ '
    r'\t]*(?:[a-z]\w*)?|[qQ]\d+|y/[^/\\\n]*/[^/\\\n]*/|s(?P<mark>[/|,:#@%_!])(?:(?!(?P=mark))[^\\\n]|\\[^\n])*'
    r'(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)[gpiI0-9]*)'
)


def unsafe_sed(words: Sequence[Word]) -> UnsafeArgument | None:
    """The word of a sed command that may write or run something, and why."""
    scripts: list[Word] = []
    operands: list[Word] = []
    at, is_over = 1, False
    while at < len(words):
        word, kind = words[at], OPTION_SPECS['sed'].kind(words[at].value)
        if not is_over and not word.is_fixed and word.can_be_option:
            return UnsafeArgument(word.raw, 'it is not known before it runs, and may be an option')
        if is_over or kind == 'operand':
            operands.append(word)
        elif word.value.startswith('--expression='):
            scripts.append(Word(word.raw, word.value[13:], word.is_fixed))
        elif kind == 'takes':
            at += 1
            scripts.extend(words[at : at + 1])
        elif word.value == '--':
            is_over = True
        elif kind != 'flag':
            return UnsafeArgument(word.raw, 'it may write files, or run a script')
        at += 1
    for script in scripts or operands[:1]:
        if not script.is_fixed or not _is_plain_sed(script.value):
            return UnsafeArgument(script.raw, 'the script may write files or run commands')
    return None


def _is_plain_sed(script: str) -> bool:
    # Item by item: one expression for the whole took minutes over a script of blanks (test_scripts.py).
    if len(script) > MAX_SCRIPT:
        return False
    at, end = 0, len(script)
    while at < end:
        if script[at] in ' \t;':
            at += 1
            continue
        found = _SED_ITEM.match(script, at)
        if found is None:
            return False
        at = found.end()
        while at < end and script[at] in ' \t':
            at += 1
        if found['command'] != '{' and at < end and script[at] not in ';}':
            return False
    return True


def unsafe_awk(words: Sequence[Word]) -> UnsafeArgument | None:
    """The word of an awk command that may write or run something, and why.

    `>` and `|` write or run only behind a `print`; before the first one they compare, or stand in a pattern.
    """
    code = _awk_code(words)
    unknown = next((word for word in code if not word.is_fixed), None)
    if unknown is not None:
        # Attack: `x='};BEGIN{system("touch y")}'; awk "{print $x"` (test_scripts.py).
        return UnsafeArgument(unknown.raw, 'the program is not known before it runs')
    text = '\n'.join(word.value for word in code)
    bare = '\n'.join(_without_strings(_LEADING.sub('', word.value)) for word in code).replace('||', '')
    # Where no text or regular expression is left that may hold a `;`, a statement ends where one stands.
    is_clear = not re.search(r'[/#\\"]', bare.replace('""', ''))
    statements = re.split('[;}]', bare) if is_clear else [bare]
    if re.search(r'@|system|getline|\\\n', text) or any(map(_PRINTING.search, statements)):
        return UnsafeArgument(code[-1].raw, 'the program may write files or run commands')
    return None


_PRINTING: Final = re.compile(r'print.*[|>]', re.DOTALL)
_LEADING: Final = re.compile(r'\A\s*!?/[^/\\"\[\n]*/')
"""A regular expression with which a program begins, where no division can stand."""
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_UP_TO_REGEX: Final = re.compile(rf'(?:[^"/#\\]|{_STRING.pattern})*')


def _without_strings(program: str) -> str:
    """A program of awk with its strings emptied, up to the first `/` or `#` outside of one.

    Attack: `/"/ { print > "x" }`. In a regular expression or a comment, a quotation mark begins no string.
    """
    found = _UP_TO_REGEX.match(program)
    end = found.end() if found is not None else 0
    return _STRING.sub('""', program[:end]) + program[end:]


def script_end(words: Sequence[Word]) -> int:
    """Where the program of an awk command ends; behind all of it where that is not certain."""
    code = _awk_code(words)
    return next((at + 1 for at, word in enumerate(words) if len(code) == 1 and word is code[0]), len(words))


def _awk_code(words: Sequence[Word]) -> Sequence[Word]:
    """The words that may be the program: one, or all where that is not certain."""
    at, spec = 1, OPTION_SPECS['awk']
    while at < len(words):
        text, kind = words[at].value, spec.kind(words[at].value)
        if text == '--':
            return words[at + 1 : at + 2]
        if kind == 'operand':
            return words[at : at + 1]
        is_known = kind in ('flag', 'takes') or spec.attached_value(text)
        grows = kind == 'takes' and any(word.growth != 'none' for word in words[at + 1 : at + 2])
        if not is_known or not words[at].is_fixed or grows:
            break
        at += 2 if kind == 'takes' else 1
    return words[1:]


_INLINE_SHELLS: Final = frozenset({'sh', 'bash', 'dash', 'ash', 'rbash', 'busybox sh'})
SHELLS: Final = _INLINE_SHELLS | {
    'zsh', 'ksh', 'mksh', 'lksh', 'oksh', 'posh', 'osh', 'xonsh', 'fish', 'csh', 'tcsh', 'yash', 'rc', 'pwsh', 'nu',
    'elvish',
}  # fmt: skip
"""Shells; of those whose grammar is not bash's, no inline code is understood."""


def run_by_shell(name: str, words: Sequence[Word]) -> WrappedCommand | None:
    """What a shell runs, or `None` if the program is none.

    Attack: `bash5.2 -c`, `ksh93 -c`, `bash-static -c`. What is behind another name than the usual one is not trusted.

    Args:
        name: The program without its path.
        words: The command.
    """
    shell = guarded_name(name.removesuffix('-static'))
    if shell not in SHELLS:
        return None
    inside = _shell(shell, words)
    return inside if shell == name else replace(inside, problem=inside.problem or 'it is a shell of another version')


def _shell(name: str, words: Sequence[Word]) -> WrappedCommand:
    at, problem, is_inline = 1, None, False
    if name in _INLINE_SHELLS and [word.value for word in words[1:2]] == ['-n'] and _names_one_file(words[2:]):
        return WrappedCommand(is_program=True)  # it reads the file, and runs nothing of it
    while at < len(words) and words[at].is_fixed and words[at].value[:1] in ('-', '+'):
        text = words[at].value
        if text == '--':
            at += 1
            break
        if text in ('-o', '+o') and at + 1 < len(words):
            safe = words[at + 1].value in ('pipefail', 'errexit', 'nounset')
            problem = problem if safe else 'a shell is started with options'
            at += 2
            continue
        is_cluster = re.fullmatch(r'-[a-zA-Z]+', text) is not None
        is_inline = is_inline or (is_cluster and 'c' in text)
        if not re.fullmatch(r'-[ceuf]+', text):
            problem = 'a shell is started with options'
        at += 1
    if not is_inline:
        return WrappedCommand(problem='a shell runs a file, or what it is fed')
    if at >= len(words) or not words[at].is_fixed:
        return WrappedCommand(problem='a shell is given code that is not known')
    if name not in _INLINE_SHELLS:
        problem = 'the shell has another grammar'
    elif 'bash' not in name:
        problem = reads_otherwise(words[at].value) or problem
    return WrappedCommand(scripts=(words[at].value,), is_transparent=True, problem=problem)


def reads_otherwise(script: str) -> str | None:
    """Why `sh` may not read a script as bash does, or `None`."""
    return 'a shell that is not bash reads it in another way' if _BASH_ONLY.search(script) else None


def _names_one_file(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].is_fixed and re.match(r'[\w./]', words[0].value) is not None


# Attack: dash takes `echo &>/dev/null touch x` for two commands, and `[[ a > x ]]` for a redirection.
_BASH_ONLY: Final = re.compile(
    r"""\$['"]|&>|\|&|>&(?!\s*[0-9-])|\[\[(?!:)|<<<|[<>]\(|;;?&|(?<!\$)\(\(|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"""
)
"""What bash reads in one way and other shells in another; also where it is quoted, as only bash's quotes are known."""

"""Shells: the code that they are given, where that is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from .inside import Inside
from .programs import guarded_name
from .words import Word

_INLINE_SHELLS: Final = frozenset({'sh', 'bash', 'dash', 'ash', 'rbash', 'busybox sh'})
SHELLS: Final = _INLINE_SHELLS | {
    'zsh', 'ksh', 'mksh', 'lksh', 'oksh', 'posh', 'osh', 'xonsh', 'fish', 'csh', 'tcsh', 'yash', 'rc', 'pwsh', 'nu', 'elvish',
}  # fmt: skip
"""Shells; of those whose grammar is not bash's, no inline code is understood."""


def run_by_shell(name: str, words: Sequence[Word]) -> Inside | None:
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


def _shell(name: str, words: Sequence[Word]) -> Inside:
    at, problem, is_inline = 1, None, False
    if name in _INLINE_SHELLS and [word.value for word in words[1:2]] == ['-n'] and _names_one_file(words[2:]):
        return Inside(is_program=True)  # it reads the file, and runs nothing of it
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
        return Inside(problem='a shell runs a file, or what it is fed')
    if at >= len(words) or not words[at].is_fixed:
        return Inside(problem='a shell is given code that is not known')
    if name not in _INLINE_SHELLS:
        problem = 'the shell has another grammar'
    elif 'bash' not in name:
        problem = reads_otherwise(words[at].value) or problem
    return Inside(scripts=(words[at].value,), is_transparent=True, problem=problem)


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

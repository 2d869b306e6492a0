"""Analyse sed, awk and shell code in the arguments of a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from .names import guarded_name
from .words import UnsafeArgument, Word


@dataclass(frozen=True, kw_only=True)
class WrappedCommand:
    """The commands that a wrapper runs."""

    words: tuple[tuple[Word, ...], ...] = ()
    """Commands, as words."""
    scripts: tuple[str, ...] = ()
    """Commands, as text for a shell."""
    is_transparent: bool = False
    """Whether the wrapper does nothing except run the commands, so that only the commands are checked."""
    changes_cwd: bool = False
    """Whether the wrapper may run the commands in directories other than its own working directory."""
    is_program: bool = False
    """Whether the wrapper itself is checked like any other program, because it also has effects of its own."""
    assignments: tuple[str, ...] = ()
    """Names of the environment variables that the wrapper sets for the commands."""
    own: int | None = None
    """Number of words before the command, if the command follows the wrapper's own words; otherwise `None`."""
    problem: str | None = None
    """Reason why the commands are not fully known; `None` if they are fully known."""


UNKNOWN_CODE: Final = 'the code for the shell is unknown until the command runs'
_MAX_SCRIPT: Final = 2_000
"""Maximum number of characters in a sed script. A longer script needs approval."""
_ADDRESS: Final = r'(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?|\\\|(?:[^|\\\n]|\\.)*\|I?|\\,(?:[^,\\\n]|\\.)*,I?)'
_PART: Final = r'(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)'
_SED: Final = (
    rf'(?:[ \t;]|(?>(?:{_ADDRESS}(?:[ \t]*+,[ \t]*+(?:[+~]?\d+|{_ADDRESS}))?)?[ \t]*+!?[ \t]*+'
    r'(?:\{|(?:\}|[pdqlnNDPhHgGx=]|:[a-z]\w*|[bt][ \t]*+(?:[a-z]\w*)?|Q\d+|y/[^/\\\n]*/[^/\\\n]*/|'
    rf's(?P<mark>[/|,:#@%_!]){_PART}{_PART}[gpiI0-9]*)[ \t]*+(?=[;}}]|\Z))))*+'
)
"""Sed commands that write no file and run no program. The quantifiers are possessive, because backtracking would take
minutes for a long run of blanks (test_grammar.py)."""


def is_plain_sed(script: str) -> bool:
    """Return whether it is certain that a sed script writes no file and runs no program."""
    return len(script) <= _MAX_SCRIPT and re.fullmatch(_SED, script) is not None


def is_plain_awk(program: str) -> bool:
    """Return whether it is certain that an awk program writes no file and runs no program.

    Attack: `print "a" | "sh"`. A text or a comparison behind `print` is not told from a redirection.
    """
    return _AWK.search(program) is None


_AWK: Final = re.compile(r'print.*[|>]|@|system|getline|ARGV|SYMTAB|\\\n', re.DOTALL)

_INLINE_SHELLS: Final = frozenset({'sh', 'bash', 'dash', 'ash', 'rbash', 'busybox sh'})
SHELLS: Final = _INLINE_SHELLS | {
    'zsh', 'ksh', 'mksh', 'lksh', 'oksh', 'posh', 'osh', 'xonsh', 'fish', 'csh', 'tcsh', 'yash', 'rc', 'pwsh', 'nu',
    'elvish',
}  # fmt: skip
"""Names of shells. Inline code is read only for the shells in `_INLINE_SHELLS`, which share bash's grammar."""


def run_by_shell(name: str, words: Sequence[Word]) -> WrappedCommand | None:
    """Return the commands that a shell runs, or `None` if the program is not a shell.

    Attack: `bash5.2 -c`, `ksh93 -c`, `bash-static -c`. A shell with an unusual name is recognised, but needs approval.

    Args:
        name: The program without its path.
        words: The command.
    """
    shell = guarded_name(name.removesuffix('-static'))
    if shell not in SHELLS:
        return None
    inside = _shell(shell, words)
    return (
        inside
        if shell == name
        else replace(inside, problem=inside.problem or 'the program is a shell under an unusual name')
    )


def _shell(name: str, words: Sequence[Word]) -> WrappedCommand:
    at, problem, is_inline = 1, None, False
    while at < len(words) and words[at].is_fixed and words[at].value[:1] in ('-', '+'):
        text = words[at].value
        at += 1
        if text == '--':
            break
        if text in ('-o', '+o') and at < len(words):
            is_known = words[at].value in ('pipefail', 'errexit', 'nounset')
            at += 1
        else:
            is_known = re.fullmatch(r'-[ceuf]+', text) is not None
            is_inline = is_inline or _INLINE.fullmatch(text) is not None
        problem = problem if is_known else 'the shell has options that are not listed as safe'
    if not is_inline:
        return WrappedCommand(problem='the shell runs commands from a file or its standard input')
    if at >= len(words) or not words[at].is_fixed:
        return WrappedCommand(problem=UNKNOWN_CODE)
    if name not in _INLINE_SHELLS:
        problem = 'the grammar of this shell differs from the grammar of bash'
    elif 'bash' not in name:
        problem = reads_otherwise(words[at].value) or problem
    return WrappedCommand(scripts=(words[at].value,), is_transparent=True, problem=problem)


def reads_otherwise(script: str) -> str | None:
    """Return why `sh` may read a script differently from bash, or `None` if no difference is found."""
    return 'other shells read this code differently than bash' if re.search(_BASH_ONLY, script) else None


# Attack: to dash, `echo &>/dev/null touch x` is two commands, `[[ a > x ]]` redirects, `a+=/b` is a program, and `10`
# in `ls 10<b` is an argument.
_BASH_ONLY: Final = (
    r"""\$['"]|\w\+=|\d\d[<>]|&>|\|&|>&(?!\s*[0-9-])|\[\[(?!:)|<<<|[<>]\(|;;?&|(?<!\$)\(\("""
    r'|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}'
)
"""Syntax that only bash supports. Quoted text is searched as well, because other shells may quote differently."""


def is_shell(program: str) -> bool:
    """Return whether a program is a shell."""
    return guarded_name(program) in SHELLS


def code_within(words: Sequence[Word]) -> UnsafeArgument | None:
    """Find code for an interpreter or shell in the arguments of an unlisted program. The program may run this code.

    Attack: `npm x -- perl -e ...` and `ssh-agent bash -c ...`, in settings whose default allows unlisted programs.
    """
    for word, following in pairwise(words[1:]):
        if is_shell(word.value) or (guarded_name(word.value) in INTERPRETERS and following.value.startswith('-')):
            return UnsafeArgument(word.raw, 'may run code')
    return None


_INLINE: Final = re.compile(r'-[A-Za-z]*c[A-Za-z]*')

INTERPRETERS: Final = frozenset({
    'python', 'pypy', 'perl', 'ruby', 'node', 'nodejs', 'php', 'lua', 'luajit', 'deno', 'bun', 'tclsh', 'julia',
    'rscript', 'guile', 'expect', 'osascript', 'r', 'tsx', 'ts-node', 'ipython', 'groovy', 'scala', 'elixir',
    'raku', 'racket', 'octave', 'gnuplot',
})  # fmt: skip

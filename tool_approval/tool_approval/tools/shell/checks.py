"""Programs that a table of options cannot tell about: each is looked at in its own way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .programs import GLOBAL_OPTIONS
from .scripts import unsafe_awk, unsafe_sed
from .words import Word


@dataclass(frozen=True, slots=True)
class Hit:
    """An option, or an argument, that is more than data."""

    word: str
    """As it stands in the command."""
    why: str
    """What it may do."""


def _sed(words: Sequence[Word]) -> Hit | None:
    found = unsafe_sed(words)
    return Hit(found[0].raw, found[1]) if found is not None else None


def _awk(words: Sequence[Word]) -> Hit | None:
    found = unsafe_awk(words)
    return Hit(found[0].raw, found[1]) if found is not None else None


def operands(words: Sequence[Word]) -> list[Word]:
    """The arguments that are no options; behind `--`, all of them."""
    found: list[Word] = []
    is_over = False
    for word in words[1:]:
        if is_over or not word.value.startswith('-') or word.value == '-':
            found.append(word)
        is_over = is_over or word.value == '--'
    return found


def _operands(
    most: int, why: str, *, numbered: str = '', first_ends: bool = False
) -> Callable[[Sequence[Word]], Hit | None]:
    """A check for programs that write to one operand more.

    Args:
        most: How many they read.
        why: What the next one means.
        numbered: Letters of options that take the next word, if they stand alone.
        first_ends: Whether there are no options behind the first operand.
    """

    def is_number_of(before: str, text: str) -> bool:
        is_option = len(before) == 2 and before[0] == '-' and before[1] in numbered
        return is_option and re.fullmatch(r'[+-]?(?:0x[0-9a-f]+|[0-9]+)', text) is not None

    def check(words: Sequence[Word]) -> Hit | None:
        end = next((at for at, word in enumerate(words) if word.value == '--'), len(words))
        numbers = [word for before, word in itertools.pairwise(words[:end]) if is_number_of(before.value, word.value)]
        # By identity: two words may be written alike.
        files = [word for word in operands(words) if not any(word is number for number in numbers)]
        if first_ends and files:
            files = list(words[next(at for at, word in enumerate(words) if word is files[0]) :])
        if any(not word.is_fixed for word in files):
            return Hit(files[-1].raw, 'it may become several arguments')
        return Hit(files[most].raw, why) if len(files) > most else None

    return check


def _git(words: Sequence[Word]) -> Hit | None:
    known = GLOBAL_OPTIONS['git']
    at = 1
    while at < len(words) and words[at].value.startswith('-'):
        text = words[at].value
        if text not in known.harmless and text not in ('--version', '--help', '-v', '-h', '--html-path'):
            return Hit(words[at].raw, 'it changes which repository, configuration or program git uses')
        at += 1
    sub = words[at].value if at < len(words) else ''
    rest = words[at + 1 :]
    for word in rest:
        if re.match(r'(?:--[\w-]+=)?\w+::', word.value) or '--upload-pack' in word.value:
            return Hit(word.raw, 'an address of this kind runs a program')
        if sub in _GIT_REMOTE and not word.is_fixed and '/' not in word.value:
            return Hit(word.raw, 'it is not known before it runs, and an address may run a program')
        if '%G' in word.value or '%(signature' in word.value:
            return Hit(word.raw, 'to check a signature, git runs the program that its configuration names')
        name = word.value.partition('=')[0]
        is_long = name.startswith('--') and len(name) > 2
        if is_long and any(long.startswith(name[2:]) for long in _GIT_LONG.get(sub, '').split()):
            return Hit(word.raw, f'`git {sub}` deletes, overwrites or reconfigures something with it')
    risky = _GIT_SUBS.get(sub)
    first = next((word for word in rest if not word.value.startswith('-')), None)
    if risky is not None and first is not None and (not risky or first.value in risky):
        return Hit(first.raw, f'`git {sub}` runs or changes something with it')
    if sub == 'config':
        return _git_config(rest)
    return None


_GIT_LONG: Final = {
    'branch': 'delete move copy force set-upstream-to unset-upstream create-reflog',
    'tag': 'delete force sign local-user verify file cleanup',
    'push': 'force delete mirror prune force-with-lease',
    'reset': 'hard',
    'checkout': 'force',
    'switch': 'force discard-changes force-create',
    'apply': 'apply',
    'fsck': 'lost-found',
    'interpret-trailers': 'in-place',
    'archive': 'remote exec',
}
"""Long options, by sub-command; `option_table` has their letters."""

_GIT_REMOTE: Final = frozenset({'fetch', 'pull', 'push', 'clone', 'ls-remote', 'archive', 'remote', 'submodule'})
_GIT_SUBS: Final = {
    'remote': frozenset(['add', 'rename', 'remove', 'rm', 'set-head', 'set-branches', 'set-url', 'prune', 'update']),
    'bisect': frozenset({'run', 'visualize', 'view'}),
    'submodule': frozenset(['foreach', 'add', 'update', 'init', 'set-url', 'sync', 'absorbgitdirs']),
    'filter-branch': frozenset[str](),
    'bundle': frozenset({'create', 'unbundle'}),
    'notes': frozenset(['add', 'append', 'copy', 'edit', 'merge', 'remove', 'prune']),
    'reflog': frozenset({'expire', 'delete', 'drop'}),
    'worktree': frozenset(['add', 'move', 'remove', 'prune', 'repair']),
    'stash': frozenset({'clear', 'drop'}),
    'hook': frozenset({'run'}),
    'maintenance': frozenset[str](),
    'for-each-repo': frozenset[str](),
}
"""Words behind a sub-command that make it another one; with none named, every operand does."""


def _git_config(rest: Sequence[Word]) -> Hit | None:
    while rest and rest[0].value in ('--global', '--local', '--system', '--worktree'):
        rest = rest[1:]
    if len(rest) == 1 and rest[0].is_fixed and re.fullmatch(r'[a-z][\w-]*(?:\.[\w-]+)+', rest[0].value):
        return None  # one key alone is read
    reads = ('--get', '--get-all', '--get-regexp', '--get-urlmatch', '--list', '-l', 'list', 'get')
    writes = re.compile(r'-(?:e|-(?:add|unset|replace|rename|remove|edit|fi|b))')
    if not rest or rest[0].value not in reads:
        return Hit(rest[0].raw if rest else 'config', '`git config` may set what git runs')
    found = next((word for word in rest if writes.match(word.value)), None)
    return Hit(found.raw, '`git config` may set what git runs') if found is not None else None


def _make(words: Sequence[Word]) -> Hit | None:
    """`X!=command` and `X:=$(shell command)` run it; so may an assignment to `SHELL`."""
    is_over = False
    for word in words[1:]:
        if not word.is_fixed:
            return Hit(word.raw, 'it is not known before it runs, and may set a variable of the program')
        if '=' in word.value and (is_over or not word.value.startswith('-')):
            return Hit(word.raw, 'it sets a variable of the program')
        is_over = is_over or word.value == '--'
    return None


def _assigning(words: Sequence[Word]) -> Hit | None:
    """Of programs for which `NAME=value` sets something."""
    found = next((word for word in words[1:] if not word.is_fixed or re.match(r'[A-Za-z_]\w*=', word.value)), None)
    return Hit(found.raw, 'it sets a variable of the program') if found is not None else None


def _dots(words: Sequence[Word]) -> Hit | None:
    for word in words[1:]:
        if (
            not word.is_fixed
            or re.match(r'\s*[.\\]', word.value)
            or re.search(r'[\n;]\s*[.\\]|ATTACH|VACUUM|load_extension|writefile|\bedit\b', word.value, re.IGNORECASE)
        ):
            return Hit(word.raw, 'it may be a command to the shell, or write a file')
    return None


def _always(why: str) -> Callable[[Sequence[Word]], Hit | None]:
    def check(words: Sequence[Word]) -> Hit | None:
        return Hit(words[0].raw, why)

    return check


def unseen_code(words: Sequence[Word]) -> Hit | None:
    """Of interpreters: code from standard input, or from nowhere."""
    operands = [word for word in words[1:] if not word.value.startswith('-')]
    if any(word.value in ('-', '/dev/stdin', '/dev/fd/0') for word in words[1:]) or len(words) == 1:
        return Hit(words[-1].raw, 'it runs what it is fed')
    is_question = len(words) == 2 and words[1].value in ('--version', '-V', '--help', '-v', '-h')
    return Hit(words[-1].raw, 'it runs what it is fed') if not operands and not is_question else None


INTERPRETERS: Final = frozenset(
    [
        'python',
        'pypy',
        'perl',
        'ruby',
        'node',
        'nodejs',
        'php',
        'lua',
        'luajit',
        'deno',
        'bun',
        'tclsh',
        'julia',
        'rscript',
        'guile',
        'expect',
        'osascript',
        'r',
    ]
)


def _test(words: Sequence[Word]) -> Hit | None:
    arithmetic = ('-eq', '-ne', '-lt', '-le', '-gt', '-ge')
    may_expand = words[0].value == '[[' or _is_one_test(words)
    for at, word in enumerate(words[1:], start=1):
        if not word.is_fixed and not may_expand:
            return Hit(word.raw, 'it is not known before it runs, and may be an operator')
        if word.is_fixed and word.value in ('-v', '-R'):
            return Hit(word.raw, 'it evaluates a subscript, which may run a command')
        if word.is_fixed and word.value in arithmetic:
            sides = [*words[at - 1 : at], *words[at + 1 : at + 2]]
            if not all(side.is_fixed and re.fullmatch(r'[+-]?\d{1,18}', side.value) for side in sides):
                return Hit(word.raw, 'it evaluates arithmetic, which may run a command')
    return None


_UNARY: Final = frozenset(f'-{letter}' for letter in 'abcdefghknprstuwxzGLNOS')


def _is_one_test(words: Sequence[Word]) -> bool:
    """Whether there is one test whose operator is fixed: with two or three words POSIX says which one that is."""
    inner = list(words[1:])
    if words[0].value == '[' and inner and inner[-1].value == ']' and inner[-1].is_fixed:
        inner.pop()
    if any(word.growth != 'none' for word in inner):
        return False
    if inner and inner[0].is_fixed and inner[0].value == '!':
        inner = inner[1:]
    fixed_ones = [word.value if word.is_fixed else None for word in inner]
    match fixed_ones:
        case [str() as operator, _]:
            return operator in _UNARY
        case [_, '=' | '==' | '!=', _]:
            return True
        case _:
            return False


def _set(words: Sequence[Word]) -> Hit | None:
    found = next((word for word in words[1:] if word.value not in _SET_SAFE), None)
    return Hit(found.raw, 'it changes how the shell works') if found is not None else None


_SET_SAFE: Final = frozenset({'-e', '-u', '-eu', '-ue', '-o', 'pipefail', '-euo', '-eo', '-f', 'errexit', 'nounset'})


def _printf(words: Sequence[Word]) -> Hit | None:
    first = words[1] if len(words) > 1 else None
    if first is not None and first.can_be_option and first.value != '--':
        return Hit(first.raw, '`-v` sets a variable, and evaluates its subscript')
    template = next((word for word in words[1:] if word.value != '--'), None)
    if template is not None and (not template.is_fixed or re.search(r'%[^a-zA-Z%]*[hlLjqtz]*n', template.value)):
        return Hit(template.raw, '`%n` sets a variable')
    return None


def _date(words: Sequence[Word]) -> Hit | None:
    is_value = False
    for word in words[1:]:
        text = word.value
        if is_value or text.startswith('+'):
            is_value = False
        elif text.startswith('--'):
            is_value = len(text) > 3 and '=' not in text and any(n.startswith(text[2:]) for n in ('date', 'reference'))
        elif text.startswith('-'):
            is_value = re.fullmatch(r'-[uR]*[dr]', text) is not None
        else:
            return Hit(word.raw, 'it sets the clock')
    return None


def _pytest(words: Sequence[Word]) -> Hit | None:
    # Also behind `--`: such arguments are replaced before any option is looked for.
    found = next(
        (word for word in words[1:] if word.value.startswith('@') or (word.can_be_option and not word.is_fixed)), None
    )
    return Hit(found.raw, 'options may be read from the file') if found is not None else None


def _tar(words: Sequence[Word]) -> Hit | None:
    """The first word may be a cluster of letters without a dash."""
    letters = words[1].value if len(words) > 1 else ''
    if len(words) > 1 and not words[1].is_fixed:
        return Hit(words[1].raw, 'it is not known before it runs, and may be an option')
    if re.fullmatch(r'[A-Za-z]+', letters) and (bad := re.search(r'[IFxruA]', letters)):
        return Hit(letters, f'`{bad[0]}` unpacks, changes or runs something')
    return None


CHECKS: Final[dict[str, Callable[[Sequence[Word]], Hit | None]]] = {
    'sed': _sed, 'gsed': _sed, 'awk': _awk, 'gawk': _awk, 'mawk': _awk, 'nawk': _awk, 'original-awk': _awk,
    'uniq': _operands(1, 'the second file is written', numbered='fsw'),
    'xxd': _operands(1, 'the second file is written', numbered='cgls', first_ends=True),
    'ptx': _operands(1, 'the second file is written'), 'cpp': _operands(1, 'the second file is written'),
    'json.tool': _operands(1, 'the second file is written'), 'ldd': _always('it may run the file'),
    'pytest': _pytest, 'py.test': _pytest,
    'sqlite': _dots, 'psql': _dots, 'mysql': _dots, 'mariadb': _dots, 'duckdb': _dots,
    'git': _git, 'make': _make, 'gmake': _make, 'dd': _assigning, 'test': _test, '[': _test, '[[': _test,
    'set': _set, 'printf': _printf, 'date': _date, 'tar': _tar, 'bsdtar': _tar,
    'hostname': _operands(0, 'it sets the name'),
    **{name: _always('it runs what it is fed') for name in ['at', 'batch', 'crontab', 'ed', 'red', 'ftp', 'm4', 'dc', 'socat', 'screen', 'tmux']},
    **{name: _always('it runs, or changes what the shell runs') for name in (
        '.', 'source', 'alias', 'unalias', 'shopt', 'enable', 'hash', 'bind', 'complete', 'compgen', 'compopt',
        'mapfile', 'readarray', 'let', 'declare', 'typeset', 'local', 'export', 'readonly', 'unset', 'getopts', 'fc',
        'history', 'read', 'wait', 'umask', 'ulimit', 'disown', 'suspend', 'caller', 'coproc',
    )},
}  # fmt: skip

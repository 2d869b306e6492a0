"""Find the arguments that make an innocent program run others, or write files: they lift a pre-approval."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .checks import CHECKS, INTERPRETERS, unseen_code
from .git_checks import unknown_command
from .program_data import (
    GIT,
    HANDED_ON,
    INERT,
    OPTION_SPECS,
    RESPONSE_FILES,
    SAME_ENTRY,
    UNSAFE,
    OptionSpec,
    UnsafeOptions,
    option_name,
    plain_name,
)
from .programs import GLOBAL_OPTIONS, guarded_name, program_name, sub_command_at, trusted_name
from .scripts import script_end
from .words import UnsafeArgument, Word, fixed


def opaque_arguments(words: Sequence[Word]) -> set[int]:
    """The places of words that are not known before they run, and yet certainly no options: `git commit -m "$x"`.

    They are values, or stand behind an `--` that certainly ends the options: `git log -- "$f"`. The words are gone
    through from the first one, by what is known of the program's options. Behind an option that is not known nothing is
    certain, since it may take the next word. Attack: `find . -newer -name "$x"`, where `-name` is a file
    (test_honest_commands.py). Only a word that stays one word is a value. A template, as of `--format`, is none: it may
    name what git runs.

    Args:
        words: A command with a fixed program.
    """
    known, at = _options_of(words)
    found: set[int] = set()
    while known is not None and at < len(words):
        word, text = words[at], words[at].value
        is_attached = known.attached_value(text) is not None
        if not word.is_fixed:
            if not is_attached or word.growth != 'none':
                break
            found.add(at)
        elif text == '--' and known.has_end:
            return found | set(range(at + 1, len(words)))
        elif known.kind(text) == 'takes':
            at += 1
            if at < len(words) and words[at].growth != 'none':
                break
            found.add(at)
        elif known.kind(text) == 'unknown':
            break
        at += 1
    return found


def _options_of(words: Sequence[Word]) -> tuple[OptionSpec | None, int]:
    """What is known of the program, or of its sub-command, and where its arguments begin."""
    name = trusted_name(words[0].value) or ''
    if name != 'git':
        return OPTION_SPECS.get(name), 1
    at = sub_command_at(words)
    sub = words[at].value if at < len(words) and words[at].is_fixed else ''
    # Without a sub-command of its own, `git stash` finds out by the first word what is meant.
    if sub == 'stash' and [word.value for word in words[at + 1 : at + 2]] != ['push']:
        return None, at
    return GIT.get(sub), at + 1


def is_inert(program: str) -> bool:
    """Whether the program reads and prints, whatever its arguments are."""
    return trusted_name(program) in INERT


def find_unsafe(words: Sequence[Word], *, named: int = 1) -> UnsafeArgument | None:
    """The first argument that makes the program run or write something, or that is not known and may.

    Args:
        words: A command with a fixed program.
        named: How many words the rule that approves it names: somebody wrote these down.
    """
    if is_inert(words[0].value):
        return None
    name = known_name(words[0].value)
    check = CHECKS.get(name)
    own = _without_named(name, words, named)
    hit = check(words) if check is not None else None
    if check is not None and hit is not None and hit.word in [word.raw for word in words[1:named]]:
        hit = check(own)  # the rule names the first one, and nothing behind it
    hit = hit or _taken_back(words, named) or _response_file(name, words, named) or _handed_on(name, words, named)
    hit = hit or _further_target(name, words, named) or (unknown_command(words, named=named) if name == 'git' else None)
    if hit is not None:
        return hit
    if name in ('printf', 'test', '[', '[[', 'cd'):
        return None  # what else stands there is no option
    if name in INTERPRETERS and (hit := unseen_code(words)) is not None:
        return hit
    end = _script_end(name, words, named)
    values = set[int]() if all(word.is_fixed for word in words) else opaque_arguments(words)
    for at, word in enumerate(words[1:], start=1):
        if at < named or at in values:
            continue
        # Behind the program of awk stand files and variables.
        if not word.is_fixed and word.can_be_option and not (name in _AWKS and at >= script_end(words)):
            return UnsafeArgument(word.raw, 'it is not known before it runs, and may be an option')
        # Behind an option, `--` may be its value: `sort --random-source -- -o x` writes `x` (test_options.py).
        if word.value == '--' and name not in _NO_END and not words[at - 1].value.startswith('-'):
            break
        if at < end and word.value.startswith(('-', '+')) and (why := _why(name, words, at, own)) is not None:
            return UnsafeArgument(word.raw, why)
    return None


_CHECKED_MODULES: Final = frozenset({'pytest', 'mypy', 'ruff', 'black', 'isort', 'flake8', 'pylint', 'unittest'})


def _script_end(name: str, words: Sequence[Word], named: int) -> int:
    """Where the options of an interpreter end: behind a script, or a module that the rule names and that is checked by
    itself. Attack: `node --foo a.js -e x`; behind an option, a word may be its value. `node inspect -e x` is no script.
    """
    second = words[1] if len(words) > 1 else words[0]
    if name in ('python', 'pypy') and second.value == '-m' and named > 2:
        return 3 if words[2].value in _CHECKED_MODULES else len(words)
    is_script = name in _STOPPING and second.is_fixed and re.fullmatch(r'[^-].*[./].*', second.value) is not None
    return 2 if is_script and second is not words[0] else len(words)


_AWKS: Final = frozenset({'awk', 'gawk', 'mawk', 'nawk', 'original-awk'})
_STOPPING: Final = frozenset({'python', 'pypy', 'node', 'nodejs', 'perl', 'ruby'})
"""Interpreters whose own options stand in front of the script only."""


def _without_named(name: str, words: Sequence[Word], named: int) -> Sequence[Word]:
    """The command without what the rule names of it, except for the sub-command."""
    known = GLOBAL_OPTIONS.get(name)
    if name in ('tar', 'bsdtar') and named > 1:
        return [words[0], fixed('-'), *words[named:]]  # what stands behind its letters is no letters
    if known is None:
        return [words[0], *words[named:]]
    at = 1
    while at < min(named, len(words)) and words[at].value.startswith('-'):
        at += 2 if words[at].value in known.valued else 1
    # To `git config` a key alone is read, and with a value behind it set.
    sub = list(words[at : at + 1])
    keeps_all = any(word.value == 'config' for word in sub)
    return [words[0], *sub, *words[at + 1 if keeps_all else max(named, at + 1) :]]


def _taken_back(words: Sequence[Word], named: int) -> UnsafeArgument | None:
    """Attack: `git clean -n --no-dry-run -f` under a rule for `git clean -n`; `unzip -l --l`, `tsc --noEmit false`."""
    options = [word.value for word in words[1:named] if word.value.startswith('-')]
    behind = words[named].value if named < len(words) else ''
    if words[named - 1].value in options and behind.casefold() in _NO:
        return UnsafeArgument(words[named].raw, 'it may take back what the rule names')
    for word in words[named:] if options else ():
        text = word.value
        for option in options:
            name = option.lstrip('-') if option.startswith('--') else ''
            letter = option[1:] if len(option) == 2 else ''
            opposite = [f'{option}-', *([f'--{letter}', f'+{letter}'] if letter else [])]
            if (
                text in opposite
                or _denies(option, text)
                or (text.startswith('--no-') and name.startswith(text[5:] if name else ''))
            ):
                return UnsafeArgument(word.raw, 'it may take back what the rule names')
    return None


_NO: Final = frozenset({'false', 'f', '0', 'no', 'n', 'off', 'null', 'undefined'})


def _denies(option: str, text: str) -> bool:
    """Attack: `terraform fmt -check --check=F`. To Go's flags, one dash is as good as two, and `F` is false."""
    name, has_value, value = text.partition('=')
    is_same = text.startswith('-') and plain_name(option).startswith(plain_name(name)) and plain_name(name) != ''
    return is_same and has_value != '' and value.casefold() in _NO


def _response_file(name: str, words: Sequence[Word], named: int) -> UnsafeArgument | None:
    """Attack: `gcc @file`, with `-o x` in the file. Also behind `--`: most put the file's words in its place first."""
    for word in words[named:] if name in RESPONSE_FILES else ():
        if word.value.startswith('@'):
            return UnsafeArgument(word.raw, 'options may be read from the file')
        if word.can_be_option and not word.is_fixed:
            return UnsafeArgument(word.raw, 'it is not known before it runs, and may be `@file` or an option')
    return None


def _further_target(name: str, words: Sequence[Word], named: int) -> UnsafeArgument | None:
    """Attack: a rule approves `make test`, and `make test deploy` deploys."""
    for word in words[named:] if name in _MAKES and named > 1 else ():
        if not re.fullmatch(r'-.*|[\d.]+', word.value, re.DOTALL):
            return UnsafeArgument(word.raw, 'it may be one more target, which the rule does not name')
    return None


_MAKES: Final = frozenset({'make', 'gmake', 'bmake', 'remake', 'ninja'})


def _handed_on(name: str, words: Sequence[Word], named: int) -> UnsafeArgument | None:
    """Attack: `tox -- -p x`, `npm test -- --require ./x`. Some hand on everything behind the script's name."""
    texts = [word.value for word in words]
    begin = texts.index('--') + 1 if '--' in texts else named if name in ('yarn', 'pnpm', 'bun') else len(words)
    for at in range(max(begin, named), len(words)) if name in HANDED_ON else ():
        for program in HANDED_ON[name] if texts[at].startswith('-') else ():
            if (why := _why(program, words, at, words)) is not None:
                return UnsafeArgument(words[at].raw, f'{program} may be given it: {why}')
        if name == 'cmake' and '=' in texts[at]:
            return UnsafeArgument(words[at].raw, 'it may set a variable of the program')
    return None


def known_name(program: str) -> str:
    """The name in the table: `python` for `python3.11`, `gcc` for `x86_64-linux-gnu-g++-12`, `diff3` for `diff3`."""
    name = _VARIANT.sub('', program_name(program).casefold())
    name = name if name in UNSAFE or name in CHECKS or name in SAME_ENTRY else guarded_name(name)
    if (compiler := _COMPILER.fullmatch(name)) is not None:
        name = compiler[1]
    return SAME_ENTRY.get(name, name)


_VARIANT: Final = re.compile(r'\.(?:basic|tiny|gtk3?|nox|athena|motif)$')
"""How Debian names the kinds of vim."""
_COMPILER: Final = re.compile(
    r'(?:[\w.]+-){0,4}?(gcc|g\+\+|c\+\+|cc|cpp|clang|clang\+\+|gfortran|ld|as|nm|ar|objdump)(?:-?[\d.]+)?'
)
"""Compilers and their like have the machine in front of their names, and the version behind."""


_NO_END: Final = frozenset(
    {
        'find', 'git', 'npm', 'npx', 'vim', 'vi', 'nvim', 'ex', 'view', 'less', 'tar', 'pytest', 'sqlite',
    }
)  # fmt: skip
"""Programs in which `--` does not end what may run something, or not for sure."""


def _why(name: str, words: Sequence[Word], at: int, own: Sequence[Word]) -> str | None:
    text = words[at].value
    entry = UNSAFE.get(name)
    if entry is None or _is_harmless(entry, words, at):
        return None
    behind = own if name in GLOBAL_OPTIONS else words
    sub = next((word.value for word in behind[1:] if not word.value.startswith('-')), '')
    given = option_name(text)
    if (is_word := _as_word(entry, text)) is not None:
        return is_word
    if text.startswith('--') and len(text) > 2:
        if len(given) == 1 and entry.one_dash and given in entry.short:
            return f'`-{given}` may run or write something'
        return _as_long(entry, given)
    if text.startswith('+'):
        return '`+` begins a command' if '+' in entry.words else None
    if entry.one_dash and len(given) > 1 and (is_long := _as_long(entry, given)) is not None:
        return is_long
    more = entry.by_sub.get(sub, '')
    letters = entry.short + more
    if more.startswith('-'):
        # Attack: `kubectl -n logs apply -f x`, where the first word is a value.
        letters = ''.join(set(entry.short) - set(more)) if words[1].value == sub else entry.short
    for letter in text[1:]:
        if letter in letters:
            return f'`-{letter}` may run or write something'
        if letter in entry.valued:
            return None
    return None


def _as_word(entry: UnsafeOptions, text: str) -> str | None:
    """Of options with one dash and many letters; some take them with two as well."""
    name = option_name(text)
    if text in entry.words or (name and f'-{name}' in entry.words):
        return f'`{text[: text.index(name)]}{name}` may run or write something'
    if text.startswith(entry.prefixes):
        return f'`{text}` may run or write something'
    return None


def _as_long(entry: UnsafeOptions, given: str) -> str | None:
    """Of long options, cut short and in any way to write them: to some programs `--outDir` is `--out-dir`."""
    if given in entry.safe:
        return None
    plain = plain_name(given)
    return f'`--{given}` may run or write something' if any(each.startswith(plain) for each in entry.long) else None


def _is_harmless(entry: UnsafeOptions, words: Sequence[Word], at: int) -> bool:
    """Whether the option is one of those, with their values, that do no harm although their names are in the table."""
    if entry.harmless is None:
        return False
    given = [word.value for word in words[at : at + 2] if word.is_fixed]
    return any(re.fullmatch(entry.harmless, ' '.join(given[:count])) for count in (1, 2))


_TAKE_DATA: Final = frozenset(
    {
        'find', 'fd', 'fdfind', 'rg', 'sed', 'gsed', 'awk', 'gawk', 'mawk', 'nawk', 'sort', 'uniq', 'tree', 'file',
        'date', 'printf', 'test', '[', '[[', 'man', 'pytest', 'py.test', 'mypy', 'read', 'cd',
    }
)  # fmt: skip
"""What `find -exec` runs is judged as a command of its own."""
_OF_GIT: Final = frozenset(
    {
        'log', 'diff', 'show', 'status', 'blame', 'grep', 'ls-files', 'ls-tree', 'branch', 'tag', 'commit', 'add',
        'stash', 'describe', 'shortlog', 'rev-parse', 'rev-list', 'cat-file',
    }
)  # fmt: skip
"""Sub-commands of git whose arguments are names, texts and paths; git lets nobody give them another meaning."""
_MODULES: Final = frozenset({'pytest', 'mypy'})


def takes_data(words: Sequence[Word]) -> bool:
    """Whether no argument is a command to the program, even if one names a blocked program: `git log --grep=rm`.

    Attack: a rule approves `fd -x`, another blocks `rm`, and `fd -x rm` removes. An option that runs something
    is looked for in every word, also in those that a rule names (test_honest_commands.py).

    Args:
        words: A command with a fixed program.
    """
    if is_inert(words[0].value):
        return True
    name = trusted_name(words[0].value)
    if name == 'git':
        sub = next(iter(words[sub_command_at(words) :]), None)
        return sub is not None and sub.is_fixed and sub.value in _OF_GIT and find_unsafe(words) is None
    if name == 'command':
        return len(words) > 1 and words[1].value in ('-v', '-V') and find_unsafe(words) is None
    if name in ('python', 'python3') and len(words) > 2 and words[1].value == '-m' and words[2].value in _MODULES:
        return words[2].is_fixed and find_unsafe(words[2:]) is None
    return name in _TAKE_DATA and find_unsafe(words) is None

"""Name programs and their sub-commands: which path means which, and which names mean the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from .words import Word, fixed

TRUSTED_PLACES: Final = ('/usr/bin/', '/bin/', '/usr/sbin/', '/sbin/', '/usr/local/bin/')
"""Where a program belongs to the system: nobody without its rights can put another one there."""
_VERSION: Final = re.compile(r'(?<=[a-z])-?\d+(?:\.\d+)*$')
_MAIN: Final = re.compile(r'(?<=[\w-])(?:/__main__\.pyc?|\.__main__)$')
_SUFFIX: Final = re.compile(r'\.(?:exe|cmd|bat|com)$')


def program_name(text: str) -> str:
    """The last part of a program's path, for which a guarding rule counts wherever the file lies."""
    return text.rstrip('/').rsplit('/', 1)[-1]


def trusted_name(text: str) -> str | None:
    """The name by which a rule may let it run unasked: itself, or the name of a file of the system."""
    if '/' not in text:
        return text
    for place in TRUSTED_PLACES:
        rest = text.removeprefix(place)
        if rest != text and '/' not in rest:
            return rest
    return None


def guarded_name(text: str) -> str:
    """What a guarding rule compares: `/bin/RM`, `rm.exe` and `rm` are one, and so are `pip3.11` and `pip`."""
    # Attack: `python -m pip.__main__`, and `python /usr/lib/python3/dist-packages/pip/__main__.py`.
    whole = _MAIN.sub('', text.casefold())
    name = _SUFFIX.sub('', program_name(whole))
    return _VERSION.sub('', name)


class SubCommands:
    """The options that a program takes before its sub-command."""

    def __init__(self, harmless: str = '', valued: str = '', flags: str = '') -> None:
        """List them.

        Args:
            harmless: Flags that change nothing; a pre-approval may ignore them.
            valued: Options that take the next word.
            flags: Options that do not.
        """
        self.harmless = frozenset(harmless.split())
        self.valued = frozenset(valued.split())
        self.flags = frozenset(flags.split()) | self.harmless


GLOBAL_OPTIONS: Final = {
    'git': SubCommands(
        harmless='--no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs',
        valued='-c -C --git-dir --work-tree --namespace --config-env --super-prefix --list-cmds --attr-source',
        flags='-p --paginate --bare --no-replace-objects --icase-pathspecs --html-path --man-path --info-path -v -h',
    ),
}
"""What is known of programs whose rules are mostly about sub-commands. Of the others, an option may or may not take the
next word, and a guarding rule assumes both."""


def sub_command_at(words: Sequence[Word]) -> int:
    """Where the sub-command of a git command is, behind the flags that change nothing; at the end if there is none."""
    harmless = GLOBAL_OPTIONS['git'].harmless
    return next(
        (at for at, each in enumerate(words) if at and not (each.is_fixed and each.value in harmless)), len(words)
    )


def named_words(words: Sequence[Word], pattern: Sequence[str]) -> int:
    """How many words of a command an approving rule names, with the flags of git that it may ignore."""
    is_shifted = trusted_name(words[0].value) == 'git' and [word.value for word in words[: len(pattern)]] != [
        words[0].value, *pattern[1:]
    ]  # fmt: skip
    return len(pattern) + (sub_command_at(words) - 1 if is_shifted else 0)


_NPM: Final = {
    'install': 'i in ins inst insta instal isnt isnta isntal isntall add',
    'uninstall': 'unlink remove rm r un',
    'run': 'run-script rum urn',
    'exec': 'x',
    'test': 't tst',
    'install-test': 'it',
    'ci': 'clean-install ic install-clean isntall-clean',
    'install-ci-test': 'cit sit clean-install-test',
    'update': 'u up upgrade udpate',
    'init': 'create innit',
    'config': 'c',
    'link': 'ln',
    'rebuild': 'rb',
    'owner': 'author ogr',
    'dedupe': 'ddp',
    'adduser': 'add-user login',
    'dist-tag': 'dist-tags',
    'view': 'v info show',
    'search': 's se find',
    'explain': 'why',
    'version': 'verison',
}
_CARGO: Final = {'build': 'b', 'check': 'c', 'test': 't', 'run': 'r', 'doc': 'd', 'remove': 'rm'}
_IP: Final = {'delete': 'del', 'address': 'addr', 'list': 'show lst ls'}
_SAME: Final = {
    'npm': _NPM,
    'pnpm': _NPM,
    'yarn': _NPM,
    'bun': _NPM,
    'cargo': _CARGO,
    'ip': _IP,
    'hg': {'commit': 'ci', 'update': 'up checkout co', 'remove': 'rm', 'rename': 'mv move'},
    'svn': {'commit': 'ci', 'delete': 'del remove rm', 'checkout': 'co', 'update': 'up', 'switch': 'sw'},
    'helm': {'uninstall': 'un del delete', 'pull': 'fetch', 'list': 'ls'},
    'brew': {'uninstall': 'remove rm'},
    'dnf': {'remove': 'erase rm', 'install': 'in'},
    'zypper': {'remove': 'rm', 'install': 'in'},
    'docker': {'rm': 'remove'},
    'git': {'add': 'stage', 'init': 'init-db'},
    'systemctl': {'restart': 'try-restart condrestart force-reload'},
}
"""By program: names that mean the same. Of npm, from its `cmd-list.js`; of the others, from their manuals."""

_SHORTENED: Final = frozenset({'npm', 'pnpm', 'yarn', 'bun', 'hg', 'nmcli', 'networkctl', 'tc', 'bridge', 'fossil'})
"""Programs whose sub-command may be cut short, as long as it is still one: `npm publ`."""
_SHORTENED_TWICE: Final = frozenset({'ip', 'nmcli', 'tc', 'bridge', 'gradle', 'gradlew'})
"""Those of which the word behind it may be cut short, too."""

MANY_TARGETS: Final = frozenset(
    {
        'make', 'gmake', 'bmake', 'remake', 'ninja', 'gradle', 'gradlew', 'mvn', 'mvnw', 'ant', 'rake', 'just', 'task',
        'scons', 'doit', 'invoke', 'inv', 'gulp', 'grunt', 'lein', 'sbt',
    }
)  # fmt: skip
"""Programs that take several targets: a rule about `make deploy` is about `make build deploy`."""

_LONGER: Final = {
    ('git', 'push'): ['git subtree push', 'git send-pack', 'git http-push', 'git lfs push', 'git svn dcommit',
        'git p4 submit'],
    ('git', 'fetch'): ['git fetch-pack', 'git remote update', 'git lfs fetch'],
    ('git', 'pull'): ['git subtree pull', 'git lfs pull'],
    ('git', 'merge'): ['git subtree merge'],
    ('npm', 'publish'): ['npm stage publish'],
    ('docker', 'rmi'): ['docker image rm', 'docker image remove', 'docker image prune'],
    ('docker', 'build'): ['docker image build', 'docker builder build', 'docker buildx build'],
    ('docker', 'ps'): ['docker container ls', 'docker container ps', 'docker container list'],
    ('docker', 'images'): ['docker image ls', 'docker image list'],
}  # fmt: skip
"""Other commands that do the same."""
_CONTAINER_WORDS: Final = """
    attach commit cp create diff exec export kill logs pause port remove rename restart rm run start stats stop top
    unpause update wait
"""
_IMAGE_WORDS: Final = 'build history import load pull push save tag'
_OF_CONTAINERS: Final = frozenset(_CONTAINER_WORDS.split())
_OF_IMAGES: Final = frozenset(_IMAGE_WORDS.split())
"""Sub-commands of docker and podman that may stand behind `container` or `image`."""


_OPTION: Final = re.compile(r'-[A-Za-z]{1,4}|--[A-Za-z][\w-]*')
_MOST_OPTIONS: Final = 4
"""Chosen: so many options of a pattern are looked for in any order."""
_ALL: Final = '-r -R --recursive'
_LONG_NAMES: Final = {
    'rm': [_ALL, '-f --force', '-d --dir'],
    'git': ['-f --force', '-d --delete', '-n --dry-run', '-a --all'],
    'chmod': [_ALL],
    'chown': [_ALL],
    'cp': [_ALL, '-f --force'],
}
"""By program: options of one letter, and their other names."""


def alternatives(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """All the ways to write the words of a pattern, beginning with the words themselves.

    Attack: a rule blocks `npm publish`, and `npm publ` publishes; `git push`, and `git subtree push` pushes.

    Args:
        words: A program, and what follows it; the program as a guarding rule compares it.
    """
    forms = [words]
    if len(words) > 1 and not words[1].startswith('-'):
        spelled = list(_spelled(words))
        forms += [each for each in spelled if each != words]
        forms += [longer for each in spelled for longer in _longer(each)]
    return tuple(dict.fromkeys(apart for form in forms for apart in _apart(form)))


def _apart(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Attack: a rule blocks `rm -rf`, and `rm -f -r`, or `rm --recursive --force`, does the same."""
    yield words
    choices: list[list[tuple[str, ...]]] = []
    for is_options, run in itertools.groupby(words[1:], key=lambda word: _OPTION.fullmatch(word) is not None):
        given = tuple(run)
        names = [
            name for word in given for name in ([word] if word.startswith('--') else [f'-{each}' for each in word[1:]])
        ]
        if not is_options or len(names) > _MOST_OPTIONS:
            choices.append([given])
            continue
        orders = itertools.permutations([_option_names(words[0], name) for name in names])
        choices.append([each for order in orders for each in itertools.product(*order)])
    for parts in itertools.product(*choices):
        yield (words[0], *itertools.chain.from_iterable(parts))


def _option_names(program: str, name: str) -> list[str]:
    return next((names.split() for names in _LONG_NAMES.get(program, ()) if name in names.split()), [name])


def _longer(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = 'docker' if words[0] == 'podman' else words[0]
    for text in _LONGER.get((name, words[1]), ()):
        yield (words[0], *text.split()[1:], *words[2:])
    if name == 'docker' and words[1] in _OF_CONTAINERS:
        yield (words[0], 'container', *words[1:])
    if name == 'docker' and words[1] in _OF_IMAGES:
        yield (words[0], 'image', *words[1:])


def _spelled(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    program = words[0]
    choices = [
        spellings(program, word) if at == 1 or (at == 2 and program in _SHORTENED_TWICE) else (word,)
        for at, word in enumerate(words[1:], start=1)
    ]
    for rest in itertools.product(*choices):
        yield (program, *rest)


def spellings(program: str, word: str) -> tuple[str, ...]:
    """The names of one sub-command: what is the same, and each cut short where the program takes that."""
    if word.startswith('-'):
        return (word,)
    same = _SAME.get(program, {})
    names = {
        word,
        *next((f'{name} {others}'.split() for name, others in same.items() if word in (name, *others.split())), ()),
    }
    if program not in _SHORTENED and program not in _SHORTENED_TWICE:
        return tuple(sorted(names, key=lambda name: (name != word, name)))
    # To npm, `runScript` is `run-script`.
    names |= {re.sub(r'-([a-z])', lambda found: found[1].upper(), name) for name in names}
    taken = {name for each, others in same.items() for name in (each, *others.split())} - names
    short = {name[:end] for name in names for end in range(1, len(name) + 1)} - taken
    return tuple(sorted(short | names, key=lambda name: (name != word, name)))


def other_names(words: Sequence[Word]) -> list[Sequence[Word]]:
    """The commands that a command is by another name."""
    found = (_module(words), _git_command(words), _pip(words), _same_program(words))
    return [each for each in found if each is not None]


def _pip(words: Sequence[Word]) -> Sequence[Word] | None:
    """`pip uninstall x` of `pipx runpip a uninstall x`."""
    texts = [word.value for word in words]
    if guarded_name(texts[0]) != 'pipx' or 'runpip' not in texts:
        return None
    return [fixed('pip'), *words[texts.index('runpip') + 2 :]]


def _same_program(words: Sequence[Word]) -> Sequence[Word] | None:
    """`apt remove x` of `apt-get remove x`."""
    same = _SAME_PROGRAM.get(guarded_name(words[0].value))
    return None if same is None else [fixed(same), *words[1:]]


_SAME_PROGRAM: Final = {
    'apt-get': 'apt',
    'aptitude': 'apt',
    'yum': 'dnf',
    'tofu': 'terraform',
    'gmake': 'make',
    'nodejs': 'node',
}
"""Programs that take the sub-commands of another."""


def _git_command(words: Sequence[Word]) -> Sequence[Word] | None:
    """`git push x` of `/usr/lib/git-core/git-push x`."""
    found = re.fullmatch(r'git-([a-z-]+)', guarded_name(words[0].value))
    return None if found is None else [fixed('git'), fixed(found[1]), *words[1:]]


def _module(words: Sequence[Word]) -> Sequence[Word] | None:
    """`pip uninstall x` of `python -m pip uninstall x`, and of `coverage run -m pip uninstall x`."""
    name = guarded_name(words[0].value)
    if name not in ('python', 'pypy', 'py') and not (name == 'coverage' and any(word.value == 'run' for word in words)):
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch('-[A-Za-z]*m', word.value) and at + 1 < len(words):
            return words[at + 1 :]
        if (found := re.fullmatch(r'-[A-Za-z]*m(\w[\w.]*)', word.value)) is not None:
            return [fixed(found[1]), *words[at + 1 :]]
    return None

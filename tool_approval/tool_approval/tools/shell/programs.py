"""The names of programs: which path means which, and which words in front of a sub-command are not it."""

from __future__ import annotations

import re
from typing import Final

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

HAS_SUB_COMMANDS: Final = frozenset(
    {
        'git', 'npm', 'pnpm', 'yarn', 'cargo', 'go', 'pip', 'uv', 'poetry', 'docker', 'podman', 'kubectl', 'helm', 'gh',
        'systemctl', 'apt', 'apt-get', 'brew', 'terraform', 'dotnet', 'gradle', 'mvn', 'rustup', 'hatch', 'pdm', 'make',
    }
)  # fmt: skip
"""Programs of which "this program with this sub-command" means something."""
TWO_LEVELS: Final = frozenset(
    {
        ('npm', 'run'), ('pnpm', 'run'), ('yarn', 'run'), ('docker', 'compose'), ('git', 'stash'), ('git', 'remote'),
        ('git', 'worktree'), ('git', 'submodule'), ('docker', 'image'), ('docker', 'container'), ('gh', 'pr'),
        ('gh', 'issue'), ('gh', 'repo'), ('kubectl', 'config'), ('uv', 'pip'), ('hatch', 'env'),
    }
)  # fmt: skip
"""Sub-commands with sub-commands of their own."""

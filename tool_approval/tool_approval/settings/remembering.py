"""Decide what an approval of a command covers if it is remembered, and until which file changes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tool_approval.os_sandbox import ExtraAccess
from tool_approval.os_sandbox.git_forms import text
from tool_approval.os_sandbox.git_mounts import led_to
from tool_approval.os_sandbox.mounts import TEMPORARY
from tool_approval.os_sandbox.profile import covers
from tool_approval.os_sandbox.tree import RUN_LATER
from tool_approval.tools.shell import Explanation
from tool_approval.tools.shell.reading import fixed_words
from tool_approval.tools.shell.tool import digest_of

from .profiles import Confinement

_DEFINES: Final = (*RUN_LATER, 'pyproject.toml', 'setup.cfg', 'Cargo.toml', 'Gemfile', 'composer.json', 'Dockerfile')
"""Names of files that say what package managers run."""
_HOOKS: Final = (
    'pre-commit', 'prepare-commit-msg', 'commit-msg', 'post-commit', 'post-index-change', 'reference-transaction',
)  # fmt: skip
"""Hooks that `git add` and `git commit` run; githooks(5)."""
_PARTS: Final = re.compile('[=:,@]')


@dataclass(frozen=True, kw_only=True)
class Remembering:
    """Scope of remembered approvals of confined commands."""

    confinement: Confinement
    """The access of commands."""
    cwd: str
    """Absolute path of the working directory, without links."""

    def covers_more_than_one_call(self, extra: ExtraAccess) -> bool:
        """Return whether it may be remembered for other calls: git must run nothing that commands could write."""
        # Attack: an approval of any `git commit` also runs a hook that the agent has changed since, or a script of the
        # work tree that a hook of the user runs.
        roots = self.confinement.roots
        is_changeable = any(
            '[filter' in text(f'{common}/config')
            or any(covers(roots, path) for path in led_to(common))
            or any(os.path.lexists(f'{common}/hooks/{name}') for name in _HOOKS)
            for common in extra.git
        )
        return not is_changeable

    def can_be_remembered(self, explanation: Explanation, extra: ExtraAccess) -> bool:
        """Return whether an approval may be remembered. With the network or an environment, the program must need it by
        itself.

        Attack: an approval of `python fetch.py` with the network covers what the agent has since written into the file,
        or into one that it imports (`test_the_network_is_not_remembered_for_what_runs_files_of_the_workspace`).
        """
        wide = {name for name, has in (('network', extra.network), ('environment', extra.writes)) if has}
        if not wide:
            return True
        # Attack: the words name a file in a form that is not noticed, or in the private `/tmp`, which is not the one of
        # the host; what is there can change without approval (`test_remembered_words_name_no_file_that_is_not_seen`).
        words = fixed_words(explanation.command)
        if words is None:
            return False
        paths = (path for word in words for path in self._named(word))
        is_unseen = any(covers((TEMPORARY,), path) and not covers(self.confinement.roots, path) for path in paths)
        return not is_unseen and len(explanation.parts) == 1 and wide <= explanation.needs

    def defined_by(self, explanation: Explanation, extra: ExtraAccess) -> Mapping[str, str]:
        """Map the files that say what a command runs to their digests: programs of environments named as a word is.

        With the network or an environment, they are also the files that the words name, and those of package managers.
        """
        words = [word.strip('\'"') for part in explanation.parts for word in part.text.split()]
        words += fixed_words(explanation.command) or ()
        # Attack: a package that was installed brings a program `mkdir`
        # (`test_a_remembered_program_is_not_one_that_a_command_has_put_in_its_place`).
        paths = [*self.confinement.programs_written(words)]
        if extra.network or extra.writes:
            places = [self.cwd, *(path for word in words for path in self._named(word))]
            paths += [path for place in places for path in (place, *(f'{place}/{name}' for name in _DEFINES))]
        found = {os.path.relpath(path, self.cwd): os.path.realpath(path) for path in paths if os.path.isfile(path)}
        return {name: digest_of(path) if self.confinement.is_written(path) else path for name, path in found.items()}

    def _named(self, word: str) -> list[str]:
        """Return the paths that a word could name, without links."""
        # `file://localhost/tmp/a` and `//tmp/a`, too.
        parts = (*_PARTS.split(word), word[2:], ''.join(word.partition(TEMPORARY)[1:]))
        return [os.path.realpath(os.path.join(self.cwd, each)) for each in parts if each]

"""Programs that execute files of the directory they run in: to pre-approve one is to pre-approve what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tool_approval.tools.shell.programs import guarded_name, trusted_name

_LISTED: Final = """
    ansible-playbook ash bash bun bundle cmake composer csh dash deno fish gradle gradlew gulp hatch invoke irb jest
    julia just ksh lua make mocha mvn mvnw ninja node npx nose nox perl php phpunit pre-commit pypy pytest python
    rake rscript rspec ruby scons sh source tcsh tox tsx ts-node unittest vite vitest watchexec webpack zsh .
"""
_ALWAYS: Final = frozenset(_LISTED.split())
_SUB_COMMANDS: Final = {
    'npm': 'test t run run-script start stop restart install i ci exec x build rebuild publish pack link init create',
    'pnpm': 'test t run start install i exec dlx build publish',
    'yarn': 'test run start install exec dlx build publish',
    'cargo': 'test t run r build b bench check c clippy install doc rustc',
    'go': 'test run build generate vet install',
    'uv': 'run sync pip build',
    'poetry': 'run install build',
    'pdm': 'run install build',
    'pip': 'install wheel download',
    'pipenv': 'run install',
    'rye': 'run sync build',
    'dotnet': 'test run build publish msbuild',
    'swift': 'test run build',
    'zig': 'test run build',
    'mix': 'test run compile',
    'docker': 'build compose',
    'podman': 'build',
    'git': 'commit push merge rebase checkout switch am pull cherry-pick revert worktree clone submodule stash',
    'terraform': 'init plan apply destroy',
    'vagrant': 'up provision reload',
}
"""Chosen: what is common; of the others the OS sandbox alone takes care."""


def runs_files(pattern: Sequence[str]) -> bool:
    """Whether commands that begin with these words execute files that lie about: tests, scripts, build files, hooks.

    A program named by a path that is not the system's is such a file itself.
    """
    if trusted_name(pattern[0]) is None:
        return True
    name = guarded_name(pattern[0])
    if name in _ALWAYS:
        return True
    known = _SUB_COMMANDS.get(name)
    return known is not None and (len(pattern) == 1 or pattern[1] in known.split())

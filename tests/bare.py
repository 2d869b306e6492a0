"""Run a command as on a machine that lacks what `make install-system` brings: `python -m tests.bare pytest ...`."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

HIDES_DEBIAN = 'HIDES_DEBIAN_POSTGRESQL'
"""The variable that keeps `postgres_server` out of the folder where Debian has PostgreSQL's programs."""

_HIDDEN = re.compile(r'bwrap|chromium|git|ps|ss|(create|drop|init|vacuum)db|(create|drop)user|postgres|psql|pg_\w+')


def _search_path(path: str, links: Path) -> tuple[str, list[Path]]:
    """`path`, with links to the other programs of each folder that has hidden ones; and the hidden ones."""
    shown, hidden = [], []
    for folder in map(Path, path.split(os.pathsep)):
        names = os.listdir(folder) if folder.is_dir() else []
        found = [folder / name for name in names if _HIDDEN.fullmatch(name)]
        if found:
            others = links / str(len(shown))
            others.mkdir()
            for name in names:
                if not _HIDDEN.fullmatch(name):
                    (others / name).symlink_to(folder / name)
            folder = others
        shown.append(str(folder))
        hidden += found
    return os.pathsep.join(shown), hidden


def main(command: list[str]) -> int:
    """Run the command without these programs, and return how it ended."""
    environment = {name: value for name, value in os.environ.items() if name != 'SYSTEM_PACKAGES'}
    with tempfile.TemporaryDirectory(prefix='bare') as links:
        os.chmod(links, 0o755)  # some tests run programs as another user
        path, hidden = _search_path(os.environ['PATH'], Path(links))
        environment |= {'PATH': path, HIDES_DEBIAN: '1'}
        bwrap = shutil.which('bwrap')
        if bwrap is not None and os.geteuid() == 0:
            # `tool_approval` starts bubblewrap by its absolute path. For another user, hiding that takes a user
            # namespace, in which root's files belong to `nobody`: there it stays visible.
            mounts = [each for file in hidden for each in ('--ro-bind', '/dev/null', os.path.realpath(file))]
            command = [bwrap, '--dev-bind', '/', '/', '--cap-add', 'ALL', *mounts, '--', *command]
        return os.spawnvpe(os.P_WAIT, command[0], command, environment)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

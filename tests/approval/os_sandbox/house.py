"""A workspace and what lies beside it, owned by the user who runs confined commands there."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

from tool_approval.os_sandbox import Access, BubblewrapBackend, OSProfile, Root, system_profile
from tool_approval.os_sandbox.shared import SharedNamespaces

BWRAP = Path('/usr/bin/bwrap')
NOBODY = 65534
PYTHON = next((path for path in ('/usr/bin/python3', '/usr/local/bin/python3') if os.path.exists(path)), '')
"""One that can be read inside. The tests' own may lie in a home folder."""
LIMIT_S = 30


def identity(user: str) -> dict:
    """How `subprocess` becomes the user; nothing if the tests run as an ordinary one themselves."""
    if user == 'root' or os.getuid() != 0:
        return {}
    return {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}


@cache
def skip_reason(user: str) -> str:
    if sys.platform != 'linux' or not shutil.which('bwrap') or not BWRAP.is_file():
        return 'bubblewrap is not installed: make install-system'
    if user == 'root' and os.getuid() != 0:
        return 'only root can try this as root'
    if not PYTHON:
        return 'the attacks need a Python below /usr'
    if user == 'ordinary':
        allowed = subprocess.run(
            [str(BWRAP), '--unshare-user', '--ro-bind', '/', '/', 'true'], capture_output=True, **identity(user)
        )
        if allowed.returncode != 0:
            return f'an ordinary user may not make user namespaces here: {allowed.stderr.decode().strip()}'
    return ''


def share(user: str) -> SharedNamespaces:
    """Namespaces that the user shares among commands."""
    if not identity(user):
        return BubblewrapBackend().share()
    ours, theirs = socket.socketpair()
    with ours, theirs, warnings.catch_warnings():
        # Newer Pythons warn of threads that other tests, or the runner, have; the child uses none of their locks.
        warnings.simplefilter('ignore', DeprecationWarning)
        child = os.fork()
        if not child:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                shared = BubblewrapBackend().share()
                socket.send_fds(theirs, [b'.'], shared.descriptors)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        ours.setblocking(False)
        return SharedNamespaces(socket.recv_fds(ours, 1, 3)[1])


class House:
    """`work` is writable, `lib` readable, `outside` neither."""

    def __init__(self, folder: str, *, user: str, shared: SharedNamespaces | None = None) -> None:
        self.user, self.shared = user, shared
        self.backend = BubblewrapBackend()
        self.path = Path(folder).resolve()
        self.path.chmod(0o755)
        self.work, self.lib, self.outside = (self.path / name for name in ('work', 'lib', 'outside'))
        for each in (self.work, self.lib, self.outside):
            each.mkdir()
            (each / 'file.txt').write_text(f'{each.name}\n')
        self.own()

    def own(self) -> None:
        """Everything belongs to the user, however it was made."""
        if identity(self.user):
            for folder, folders, files in os.walk(self.path):
                for name in ('.', *folders, *files):
                    os.lchown(os.path.join(folder, name), NOBODY, NOBODY)

    def profile(self, **changes) -> OSProfile:
        roots = (
            *system_profile().roots,
            Root(path=str(self.work), access=Access.WRITE),
            Root(path=str(self.lib), access=Access.READ),
            *changes.pop('roots', ()),
        )
        return OSProfile(roots=roots, **changes)

    def wrap(self, script: str, *arguments: object, profile: OSProfile | None = None) -> list[str]:
        command = ['/bin/bash', '-c', script, 'script', *map(str, arguments)]
        return self.backend.wrap(command, profile or self.profile(), str(self.work), self.shared)

    def run(self, script: str, *arguments: object, profile: OSProfile | None = None, **options):
        """Run a bash script, confined, as the user."""
        inherited = () if self.shared is None else self.shared.descriptors
        options = {'stdin': subprocess.DEVNULL, 'capture_output': True, 'pass_fds': inherited} | options
        command = self.wrap(script, *arguments, profile=profile)
        return subprocess.run(command, text=True, timeout=LIMIT_S, cwd=self.work, **identity(self.user), **options)

    def python(self, code: str, *arguments: object, profile: OSProfile | None = None, **options):
        """Run a Python script, confined, as the user."""
        return self.run('exec "$0" -I -c "$@"'.replace('$0', PYTHON), code, *arguments, profile=profile, **options)

    def snapshot(self) -> dict:
        """Every name with its kind, mode, size, times and content or target."""
        found = {}
        for path in (self.path, *self.path.rglob('*')):
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            kind = stat.S_IFMT(status.st_mode)
            found[str(path)] = (kind, status.st_mode, status.st_mtime_ns, status.st_ino, content)
        return found

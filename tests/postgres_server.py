"""A PostgreSQL of a test's own: in a folder, on a socket in it, with nobody's data."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from .bare import HIDES_DEBIAN

ABSENT = 'PostgreSQL is not installed, so its store is not tested here; make install-system'
"""Why a test that needs it is skipped."""


def find_programs() -> Path | None:
    """The folder with `initdb` and `pg_ctl` of the newest PostgreSQL there is; `None` if there is none."""
    on_path = shutil.which('pg_ctl')
    places = [Path(on_path).resolve().parent] if on_path is not None else []
    # Debian keeps each version's programs out of the search path.
    if HIDES_DEBIAN not in os.environ:
        places += sorted(Path('/usr/lib/postgresql').glob('*/bin'), key=lambda folder: float(folder.parent.name))
    return next((place for place in reversed(places) if (place / 'initdb').exists()), None)


class PostgresServer:
    """Started and stopped at will."""

    def __init__(self, programs: Path) -> None:
        """Make a cluster in a temporary folder of its own: a test's may be closed to the user it runs as."""
        self._folder = tempfile.TemporaryDirectory(prefix='pg')
        folder = Path(self._folder.name)
        self._programs = programs
        self._made = 0
        self._data = folder / 'data'
        self._socket = folder / 'socket'
        self._socket.mkdir()
        self._log = folder / 'log'
        # Its programs refuse to run as root; a package brings a user for them.
        self._user = pwd.getpwnam('postgres') if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        for each in (folder, self._socket):
            os.chown(each, self._user.pw_uid, self._user.pw_gid)
        self._run('initdb', '--pgdata', self._data, '--username', 'test', '--auth', 'trust', '--no-sync', '-E', 'UTF8')

    @property
    def dsn(self) -> str:
        """How to reach it."""
        return f'host={self._socket} user=test dbname=postgres'

    def start(self, *, syncs: bool = False) -> None:
        """Start it, and wait until it takes connections. `syncs` to the disk, which a test does not need."""
        fsync = 'on' if syncs else 'off'
        options = f"-k {self._socket} -c listen_addresses='' -c fsync={fsync} -c max_connections=200"
        self._run('pg_ctl', 'start', '--wait', '--pgdata', self._data, '--log', self._log, '--options', options)

    def new_database(self, template: str = 'template1') -> str:
        """The DSN of a new database: empty, or a copy of one that is not in use."""
        self._made += 1
        name = f'made_{self._made}'
        self._run('createdb', '--host', self._socket, '--username', 'test', '--template', template, name)
        return f'host={self._socket} user=test dbname={name}'

    def stop(self, mode: str = 'immediate') -> None:
        """Stop it: `immediate` breaks all connections as a crash does."""
        self._run('pg_ctl', 'stop', '--wait', '--pgdata', self._data, '--mode', mode)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command: Sequence[str] = [str(self._programs / program), *map(str, arguments)]
        is_root = os.geteuid() == 0
        subprocess.run(
            command,
            check=True,
            cwd='/',
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user.pw_uid if is_root else None,
            group=self._user.pw_gid if is_root else None,
            extra_groups=[] if is_root else None,
            timeout=60,
        )

    def remove(self) -> None:
        """Remove what is left of it, once it is stopped."""
        self._folder.cleanup()


@pytest.fixture(scope='session')
def postgres() -> Generator[PostgresServer]:
    """A server that runs, for all tests; a test that stops it starts it again."""
    pytest.importorskip('psycopg', reason='psycopg is not installed, so the store that needs it is not tested here')
    programs = find_programs()
    if programs is None:
        pytest.skip(ABSENT)
    server = PostgresServer(programs)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.remove()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The URL of a new, empty database."""
    return url_of(postgres.new_database())


def url_of(dsn: str) -> str:
    """The URL of a database that `new_database` has made."""
    made = dict(each.split('=') for each in dsn.split())
    return f'postgresql://{made["user"]}@/{made["dbname"]}?host={made["host"]}'

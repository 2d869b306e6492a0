"""Everyday command lines: exactly those that need access are asked about, and none runs with more."""

import subprocess
import tomllib
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, OSSandboxError

from .desk import Desk, confining

EVERYDAY = tomllib.loads(Path(__file__).with_name('everyday.toml').read_text())
SETTINGS = """\
    sandbox:
      paths: {project: {root: ., mode: rw}}
    shell:
      default: {approval: false}
"""
FILES = {
    'README.md': 'one\n',
    'src/app/__init__.py': 'def add(a, b):\n    return a + b\n',
    'docs/d.csv': 'a,b\n',
    'docs/j.json': '{"a": 1}\n',
    'package.json': '{"name": "x", "version": "1.0.0", "scripts": {"build": "mkdir dist"}}\n',
    'Makefile': 'build/x:\n\tmkdir -p build\n',
}
MAKE = """
git init -q && git add -A && git -c user.name=a -c user.email=a commit -qm one
python3 -m venv --without-pip .venv
"""


class Dry(BubblewrapBackend):
    """Records the profiles, and runs nothing."""

    def __init__(self):
        super().__init__()
        self.profiles = []

    def share(self):
        raise OSSandboxError('nothing runs')

    def wrap(self, command, profile, cwd, shared=None, *, own_tmp=False):
        self.profiles.append(profile)
        return ['/bin/true']


def desk_in(folder, backend):
    work = folder / 'work'
    for name, text in FILES.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(MAKE, shell=True, cwd=work, check=True)
    return Desk(work, SETTINGS, backend=backend)


def given(profile, folder):
    """Return the kinds of access that a profile gives."""
    places = {'write': folder / 'src' / 'x', 'git': folder / '.git' / 'index', 'environment': folder / '.venv' / 'x'}
    kinds = {kind for kind, path in places.items() if profile.access(str(path)) is Access.WRITE}
    # Access to a repository includes its files.
    return (kinds - {'write'} if 'git' in kinds else kinds) | ({'network'} if profile.network else set())


@confining
@pytest.mark.parametrize('access', [row['access'] for row in EVERYDAY['command']], ids=' '.join)
def test_a_line_asks_for_the_access_that_its_words_show_and_runs_with_no_more(tmp_path, cache, monkeypatch, access):
    monkeypatch.setenv('VIRTUAL_ENV', str(tmp_path / 'work' / '.venv'))
    backend = Dry()
    desk = desk_in(tmp_path, backend)
    [lines] = [row['lines'] for row in EVERYDAY['command'] if row['access'] == access]

    asked = {line: desk.run(line)[1] for line in lines}

    assert asked == dict.fromkeys(lines, bool(access))
    assert [given(profile, desk.folder) for profile in backend.profiles] == [set(access)] * len(lines)


@confining
@pytest.mark.parametrize('line', [line for row in EVERYDAY['later'] for line in row['lines']])
def test_a_line_that_fails_without_access_names_it(tmp_path, cache, line):
    said, was_asked = desk_in(tmp_path, BubblewrapBackend()).run(line)

    assert not was_asked
    assert "Call again with access=['write']; the user is asked." in said


def test_the_lines_are_those_of_a_day():
    assert sum(len(row['lines']) for rows in EVERYDAY.values() for row in rows) == 79

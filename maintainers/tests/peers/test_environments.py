from pathlib import Path

import pytest

from maintainers.peers.catalog import Environment
from maintainers.peers.environments import InstallError, python_of


class Commands:
    def __init__(self, failing: str = '') -> None:
        self.given: list[list[str]] = []
        self._failing = failing

    def __call__(self, command: list[str]) -> None:
        self.given.append(command)
        if command[1:3] == ['-m', 'venv']:
            Path(command[3]).mkdir(parents=True)
        if self._failing and self._failing in command:
            raise InstallError('no matching distribution')


def environment(*requirements: str) -> Environment:
    return Environment(name='peer', installs=(requirements,))


def test_an_environment_is_built_with_its_requirements(tmp_path: Path):
    commands = Commands()

    python = python_of(environment('a==1'), folder=tmp_path, execute=commands)

    assert python == tmp_path / 'peer' / 'bin' / 'python'
    assert [command[1:3] for command in commands.given] == [['-m', 'venv'], ['-m', 'pip']]
    assert commands.given[1][-1] == 'a==1'


@pytest.mark.parametrize(('wanted', 'commands'), [('a==1', 0), ('a==2', 2)])
def test_environment_is_built_anew_only_for_another_version(tmp_path: Path, wanted: str, commands: int):
    python_of(environment('a==1'), folder=tmp_path, execute=Commands())
    again = Commands()

    python_of(environment(wanted), folder=tmp_path, execute=again)

    assert len(again.given) == commands


def test_an_environment_that_cannot_be_built_leaves_nothing_behind(tmp_path: Path):
    with pytest.raises(InstallError, match='no matching distribution'):
        python_of(environment('a==1'), folder=tmp_path, execute=Commands(failing='a==1'))

    assert list(tmp_path.iterdir()) == []

"""`doctor` reports whether a machine has all that is needed."""

import importlib.metadata
import os

import pytest
from tool_approval.os_sandbox import Availability


class Backend:
    name = 'fake'

    def __init__(self, *, works):
        self.works = works

    def probe(self):
        return Availability(is_available=self.works, reason='it is not there', install='install it')


@pytest.fixture
def backends(monkeypatch):
    found = [Backend(works=True)]
    monkeypatch.setattr('tool_approval.os_sandbox.platform_backends', lambda: found)
    return found


def test_doctor_reports_a_machine_where_everything_works(tool_approval, backends, work):
    finished = tool_approval('doctor')

    assert finished.status == 0
    assert 'OS sandbox        fake: works\n' in finished.out
    assert f'state             {work.parent}/state/tool-approval\n' in finished.out


def test_doctor_reports_a_machine_without_a_working_os_sandbox(tool_approval, backends):
    backends[:] = [Backend(works=False)]

    finished = tool_approval('doctor')

    assert finished.status == 1
    assert 'fake: it is not there; install it' in finished.out


def test_doctor_reports_a_platform_without_an_os_sandbox(tool_approval, backends):
    backends.clear()

    finished = tool_approval('doctor')

    assert finished.status == 1
    assert 'there is no OS sandbox for' in finished.out


def test_doctor_reports_a_machine_without_bash_and_home(tool_approval, backends, monkeypatch):
    monkeypatch.setattr('shutil.which', lambda name: None)
    monkeypatch.setattr('tool_approval.settings.protection.state_folder', lambda: None)

    finished = tool_approval('doctor')

    assert finished.status == 1
    assert 'install bash' in finished.out
    assert 'set HOME' in finished.out


@pytest.mark.parametrize(
    ('is_terminal', 'has_tty', 'said'),
    [
        (True, True, 'xterm, no colour'),
        (False, True, 'redirected: standard input, standard output, standard error; questions are asked at /dev/tty'),
        (False, False, 'no terminal, so calls that need approval are denied'),
    ],
)
def test_doctor_reports_where_questions_can_be_asked(tool_approval, backends, monkeypatch, is_terminal, has_tty, said):
    opened = os.open

    def open_tty(path, *arguments, **others):
        if path != '/dev/tty':
            return opened(path, *arguments, **others)
        if not has_tty:
            raise OSError
        return opened('/dev/null', os.O_RDWR)

    monkeypatch.setattr('os.open', open_tty)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('NO_COLOR', '1')

    assert said in tool_approval('doctor', is_terminal=is_terminal).out


def test_missing_library_is_named_with_the_install_command(tool_approval, backends, monkeypatch):
    monkeypatch.setattr(
        importlib.metadata,
        'requires',
        lambda name: [
            'pydantic>=2',
            'no-such-thing>=1; extra == "web"',
            'pydantic>=2; extra == "shell"',
            "pydantic; extra == 'web'",
            'tool-approval[web]; extra == "all"',
            'pydantic>=2; extra == "all"',
        ],
    )

    finished = tool_approval('doctor')

    version = importlib.metadata.version('pydantic')
    assert finished.out.splitlines()[-3:] == [
        f'extra shell       pydantic {version}',
        "extra web         missing no-such-thing; in a checkout, run: pip install './tool_approval[web]'",
        f'extra all         pydantic {version}',
    ]


def test_doctor_names_no_library_without_an_installed_distribution(tool_approval, backends, monkeypatch):
    def lacking(name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, 'requires', lacking)

    assert 'extra' not in tool_approval('doctor').out


def test_doctor_lists_usable_and_ignored_toolchains(tool_approval, backends, work, monkeypatch):
    home = work.parent / 'home'
    for name in ('.cargo/bin/cargo', '.nvm/nvm.sh'):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    for name in ('VIRTUAL_ENV', 'CARGO_HOME', 'NVM_DIR', 'RUSTUP_HOME', 'CONDA_PREFIX'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(home))
    monkeypatch.setenv('PYENV_ROOT', str(home))
    monkeypatch.setenv('PATH', '/usr/bin')

    finished = tool_approval('doctor')

    assert f'toolchain         cargo in {home}/.cargo\n' in finished.out
    assert (
        f'toolchain         PYENV_ROOT: {home} is ignored: the folder is the home directory, or contains it\n'
        in finished.out
    )


def test_doctor_reports_a_machine_without_own_toolchains(tool_approval, backends, work, monkeypatch):
    for name in ('VIRTUAL_ENV', 'CONDA_PREFIX', 'PYENV_ROOT', 'NVM_DIR', 'RUSTUP_HOME', 'CARGO_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(work.parent))
    monkeypatch.setenv('PATH', '/usr/bin')

    assert 'toolchain         none, so commands can use only system programs' in tool_approval('doctor').out


def test_doctor_names_the_programs_that_may_run_outside_of_the_sandbox(tool_approval, backends, work, monkeypatch):
    for folder, name in (('cache', 'gh'), ('../bin', 'git')):
        (work / folder).mkdir(exist_ok=True)
        (work / folder / name).touch(mode=0o755)
    monkeypatch.setenv('PATH', f'{work}/cache:{work.parent}/bin')
    (work / 'approvals.yaml').write_text(
        'sandbox: {paths: {cache: {root: cache, mode: rw}}}\nshell: {host: [git push, gh]}'
    )

    shown = tool_approval('doctor').out

    assert f'shell.host        git push: {work.parent}/bin/git\n' in shown
    assert "shell.host        gh: 'gh' is in no folder of PATH to which no command can write" in shown

    (work / 'approvals.yaml').write_text('shell: {host: 1}')

    assert 'shell.host' not in tool_approval('doctor').out

"""The presets of the package: what each lets run without approval, asks about and blocks."""

import asyncio
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
from tool_approval.core.config_yaml import parse_yaml
from tool_approval.os_sandbox import OSProfile, UnconfinedBackend, choose_backend
from tool_approval.os_sandbox.caches import Caches
from tool_approval.os_sandbox.profile import passed_on
from tool_approval.settings import Settings, open_workspace, parse_settings
from tool_approval.settings.extends import PresetRule, expand, read_preset
from tool_approval.settings.model import PresetName

from tests.cases import decisions
from tests.tables import table

from .desk import Backend, Desk, confining

NAMES = get_args(PresetName)
DECISIONS = decisions(Path(__file__).with_name('presets.toml'), 'read-only')


@pytest.fixture
def project(tmp_path):
    made = tmp_path / 'project'
    for name in ('src', '.git'):
        (made / name).mkdir(parents=True)
    (made / 'src' / 'a.py').write_text('a\n')
    (made / 'link').symlink_to('/etc')
    return made


@table('why, decision, command', DECISIONS)
def test_read_only_blocks_what_writes_by_name(project, why, decision, command):
    workspace = open_workspace(Settings(extends=('read-only',)), project, backend=Backend())

    assert workspace.shell.explain(command).decision == decision


def test_every_preset_has_a_file():
    assert {file.name for file in files('tool_approval.settings').joinpath('presets').iterdir()} == {
        f'{name}.yaml' for name in NAMES
    }


@table('name', NAMES)
def test_preset_has_only_directories_and_blocks_and_leaves_the_rest_to_the_os_sandbox(name):
    text = files('tool_approval.settings').joinpath('presets', f'{name}.yaml').read_text()

    document, _ = parse_yaml(text, source=name)

    assert document['sandbox'] == {'paths': {'project': {'root': '.', 'mode': 'ro' if name == 'read-only' else 'rw'}}}
    assert document.keys() == {'sandbox', 'shell'}
    assert document['shell'].keys() - {'rules'} == {'default'}
    assert document['shell']['default'] == {'approval': False}
    assert {key for rule in document['shell'].get('rules', ()) for key in rule} <= {'pattern', 'allowed'}
    assert not any(rule['allowed'] for rule in document['shell'].get('rules', ()))


def test_every_rule_of_a_preset_decides_its_own_pattern(project):
    workspace = open_workspace(Settings(extends=('read-only',)), project, backend=Backend())
    rules = read_preset('read-only').shell.rules

    decided = [workspace.shell.explain(rule.pattern).deciding.reason for rule in rules]

    assert all(reason.startswith(rule.shown) for rule, reason in zip(rules, decided, strict=True))


@table('name', NAMES)
def test_without_an_os_sandbox_no_preset_lets_a_command_run_unasked(project, name):
    workspace = open_workspace(Settings(extends=(name,)), project, backend=UnconfinedBackend())

    assert [workspace.shell.explain(command).decision for command in ('ls', 'cat src/a.py', 'make')] == ['ask'] * 3


@pytest.mark.parametrize(
    ('text', 'decision'),
    [('{extends: [default], shell: {rules: [{pattern: make, approval: false}]}}', 'allow'), ('{}', 'ask')],
)
def test_without_an_os_sandbox_the_rules_of_the_file_apply(project, text, decision):
    workspace = open_workspace(parse_settings(text), project, backend=UnconfinedBackend())

    assert workspace.shell.explain('make').decision == decision


def test_under_read_only_the_file_tools_change_nothing(project):
    workspace = open_workspace(Settings(extends=('read-only', 'default')), project, backend=Backend())

    outcomes = {
        operation: workspace.files.decide(operation, 'src/a.py', *(['b'] if operation in ('move', 'copy') else []))
        for operation in ('write_file', 'edit_file', 'delete', 'move', 'copy', 'make_directory', 'read_file')
    }

    assert [name for name, decision in outcomes.items() if decision.outcome != 'block'] == ['read_file']


def test_all_presets_can_be_combined(project):
    rules = expand(Settings(extends=NAMES)).shell.rules

    workspace = open_workspace(Settings(extends=NAMES), project, backend=Backend())

    assert all(isinstance(rule, PresetRule) and not rule.allowed for rule in rules)
    assert workspace.shell.explain('git commit -m x; pytest').decision == 'block'


@confining
def test_tests_of_the_project_run_without_approval_and_write_nothing_in_the_project(tmp_path):
    desk = Desk(tmp_path / 'desk', 'extends: [default]', backend=choose_backend())
    (desk.folder / 'test_it.py').write_text(
        'import socket, unittest\n'
        'class Test(unittest.TestCase):\n'
        '    def test_writes(self):\n'
        '        self.assertRaises(OSError, open, "test_it.py", "a")\n'
        '        self.assertRaises(OSError, open, "new", "w")\n'
        '        self.assertRaises(OSError, socket.create_connection, ("127.0.0.1", 9), 1)\n'
    )

    said, asked = desk.run('python3 -m unittest -q')

    assert not asked
    assert 'Ran 1 test' in said
    assert 'OK' in said


@confining
def test_checkers_keep_their_caches_outside_the_project(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    names = ('CARGO_TARGET_DIR', 'COVERAGE_FILE', 'MYPY_CACHE_DIR', 'RUFF_CACHE_DIR')
    text = 'extends: [default]\nshell: {rules: [{pattern: mkdir -p, approval: false, arguments: any}]}'
    desk = Desk(tmp_path / 'desk', text, backend=choose_backend())

    shown, _ = desk.run(f'env | grep -E "^({"|".join(names)})="', access=['write'])
    reading, _ = desk.run(f'env | grep -E "^({"|".join(names)})="')
    unasked = asyncio.run(desk.workspace.shell.run('mkdir -p "$CARGO_TARGET_DIR" "$COVERAGE_FILE"; env'))

    private = dict(line.split('=', 1) for line in unasked.stdout.splitlines())
    assert unasked.stderr == ''
    assert all(private[name].startswith(str(tmp_path / 'cache' / 'tool-approval')) for name in names)
    # Only a command that can write to the project keeps them there.
    assert all(name not in shown and f'{name}=' in reading for name in names)


@confining
def test_pytest_runs_without_approval_and_without_a_warning_about_its_cache(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('VIRTUAL_ENV', sys.prefix)
    monkeypatch.setenv('PATH', f'{sys.prefix}/bin:/usr/bin:/bin')
    desk = Desk(tmp_path / 'desk', 'extends: [default]', backend=choose_backend())
    (desk.folder / 'test_it.py').write_text('def test_it():\n    pass\n')

    first, was_asked = desk.run('pytest -q')
    # A project that has no cache, and in which every warning is an error.
    (desk.folder / 'pytest.ini').write_text('[pytest]\naddopts = -p no:cacheprovider --strict-config -W error\n')
    second, _ = desk.run('pytest -q')

    assert not was_asked
    assert ['1 passed' in told and 'arning' not in told for told in (first, second)] == [True, True]


def test_pytest_options_that_a_profile_passes_on_are_kept():
    caches = Caches(approved=Path('/a'), unasked=Path('/u'))

    profile = caches.open_in(OSProfile(environment=frozenset({'PYTEST_ADDOPTS'})), approved=False)

    assert passed_on(profile, {'PYTEST_ADDOPTS': '-v'})['PYTEST_ADDOPTS'] == '-v'


@confining
def test_under_read_only_no_command_writes_in_the_directory(tmp_path):
    desk = Desk(tmp_path / 'desk', 'extends: [read-only]', backend=choose_backend())
    subprocess.run(['git', 'init', '-q', '.'], cwd=desk.folder, check=True)
    (desk.folder / 'sub').mkdir()
    (desk.folder / 'sub' / 'a').write_text('a')
    desk.open(desk.loaded, backend=choose_backend())
    writers = [
        'cat sub/a > b',
        'cat sub/a > sub/a',
        'git tag v1',
        'git config user.name x',
        "python3 -c \"open('sub/a', 'w')\"",
    ]
    before = {path: path.read_bytes() for path in desk.folder.rglob('*') if path.is_file()}

    asked = [desk.run(command, **access)[1] for command in writers for access in ({}, {'access': ['write', 'git']})]

    assert not any(asked), 'there is no access that could be given'
    assert {path: path.read_bytes() for path in desk.folder.rglob('*') if path.is_file()} == before

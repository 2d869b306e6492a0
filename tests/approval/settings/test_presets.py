"""The presets of the package: what each lets run unasked, asks about and blocks."""

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

from tests.tables import table

from .desk import Backend, Desk

CONFINES = not isinstance(choose_backend(require=False), UnconfinedBackend)
NAMES = get_args(PresetName)
DECISIONS = {
    'default': {
        'allow': """
            ls | ls -la src | pwd | cat src/a.py | head -3 src/a.py | grep -rn x . | find . -name '*.py' | git status
            git log -p | git diff HEAD | git show HEAD:src/a.py | git branch | cat src/a.py \\| wc -l | tree src
        """,
        'ask': """
            ls .. | cat /etc/passwd | cat ../a | cat src/../../a | find . -delete | rm a | touch a | make | pytest
            git commit -m x | git push | cat src/a.py > b | curl example.com | git branch new | git -C /x status
            cat link/a | sed -i s/a/b/ src/a.py | python -c x | $(cat src/a.py) | git diff --no-index /etc/passwd a
        """,
    },
    'read-only': {
        'allow': """
            ls | cat src/a.py | grep -rn x . | git status | git log -p | git diff
        """,
        'ask': """
            ls .. | cat ../a | make | pytest | cat src/a.py > b | git branch new | sed -i.bak s/a/b/ a
        """,
        'block': """
            rm a | /bin/rm a | rm -rf src | touch a | mkdir b | cp src/a.py b | mv src b | ls; rm a | find . -delete
            git commit -m x | git -C /x commit | git add -A | git push | sed -i s/a/b/ src/a.py
            git checkout . | git stash pop | env rm a | echo a \\| tee b | xargs rm | sh -c 'rm a' | dd if=a of=b
        """,
    },
    'git': {
        'allow': """
            git status --short | git diff HEAD~1 | git log -p -3 | git show HEAD:src/a.py | git --no-pager diff
            git branch | git blame src/a.py | git ls-files | git rev-parse HEAD | git stash list | git stash show -p
            git tag --list 'v*' | git remote -v | git worktree list | git describe --tags | git shortlog -sn
        """,
        'ask': """
            git add -A | git commit -m x | git push | git pull | git fetch | git checkout x | git stash | git stash drop
            git tag v1 | git tag --list -d x | git remote add x y | git remote -v update | git branch -D x
            git -C /x status | git -c core.pager=x log | git log --output=x | git diff --ext-diff | git rebase main
            git reflog expire --all | git config user.name | GIT_DIR=x git status | git bisect run x
            git log --show-signature | git submodule foreach x | git diff --no-index /etc/passwd a | git show ../../x
        """,
    },
    'python': {
        'allow': """
            pytest | pytest -q tests | pytest -x -k "a or b" tests/test_a.py::test_b | python -m pytest -q
            pytest --cov=src | python -m unittest discover -s tests | ruff check .
            ruff format --check . | mypy --strict src | pyright | black --check --diff . | isort --check . | flake8 src
            pylint src | pip list | python --version
        """,
        'ask': """
            pytest -p evil | pytest --rootdir=/x | pytest -o cache_dir=/x | pytest -c evil.ini | pytest --pastebin=all
            pytest --junitxml=x | python -m pytest --basetemp=src | python x.py | python -c x | python -m http.server
            PYTHONPATH=x pytest | cd src && pytest | ruff check --fix . | ruff format . | ruff check --config x
            mypy --install-types | mypy --python-executable=x a | pyright --pythonpath ./x | black . | pip install x
            flake8 --output-file=x | pylint --init-hook=x a | python -m pip install x | coverage report
            coverage run x.py | uv sync
            .venv/bin/pytest | ./pytest | pytest $(rm x) | pytest; rm x | black --check --config x .
        """,
    },
    'node': {
        'allow': """
            npm test | npm test -- --watch=false | npm run lint | pnpm test | yarn test | bun test | eslint src
            tsc --noEmit -p . | prettier --check . | jest --coverage | vitest run | npx --no-install eslint src | npm ls
        """,
        'ask': """
            npm install | npm ci | npm run build | npm run deploy | npm publish | npx evil | npx eslint . | npx ls
            npx --no-install evil | eslint --fix . | eslint -c x . | eslint --rulesdir x . | tsc --noEmit --outDir x
            prettier --check --write . | jest --globalSetup=x | vitest | node x.js | node -e x | yarn | yarn add x
            npm test --script-shell=x | npm --prefix /x test | npm config set x y | npm config get //x/:_authToken | tsc
        """,
    },
    'rust': {
        'allow': """
            cargo test | cargo test foo -- --nocapture | cargo check | cargo clippy -- -D warnings
            cargo fmt --check | cargo tree --offline | rustc --version
        """,
        'ask': """
            cargo run | cargo build | cargo install x | cargo add x | cargo publish | cargo update | cargo fmt
            cargo clippy --fix
            cargo build --target-dir /x | cargo check --config x | cargo test --manifest-path ../x | rustup install x
            cargo +nightly test | rustc x.rs | cargo tree
        """,
    },
    'go': {
        'allow': """
            go test ./... | go test -run X ./a | go vet ./... | go build ./... | gofmt -l . | go list ./... | go doc fmt
            golangci-lint run | staticcheck ./... | go version | go env
        """,
        'ask': """
            go test -exec x | go test -c -o x | go test -toolexec=x | go vet -vettool=x | go build | go build -o x
            go get x
            go install x | go generate | go mod tidy | gofmt -l -w . | go env -w X=y | golangci-lint run --fix
            go -C /x test | go run . | gofmt -w .
        """,
    },
}  # fmt: skip
"""By preset and decision, commands between ` | `; a pipe is written `\\|`."""


def commands(text):
    lines = [line.strip() for line in text.strip().splitlines()]
    return [command.replace('\\|', '|') for line in lines for command in line.split(' | ')]


@pytest.fixture
def project(tmp_path):
    made = tmp_path / 'project'
    for name in ('src', '.git'):
        (made / name).mkdir(parents=True)
    (made / 'src' / 'a.py').write_text('a\n')
    (made / 'link').symlink_to('/etc')
    return made


@table(
    'preset, decision, command',
    [
        (preset, decision, command)
        for preset, by_decision in DECISIONS.items()
        for decision, text in by_decision.items()
        for command in commands(text)
    ],
)
def test_what_a_preset_decides(project, preset, decision, command):
    workspace = open_workspace(Settings(extends=(preset,)), project, backend=Backend())

    assert workspace.shell.explain(command).decision == decision


def test_every_preset_has_decisions():
    assert tuple(DECISIONS) == tuple(sorted(NAMES, key=list(DECISIONS).index))
    assert {file.name for file in files('tool_approval.settings').joinpath('presets').iterdir()} == {
        f'{name}.yaml' for name in NAMES
    }


@table('name', NAMES)
def test_a_preset_says_no_more_than_directories_and_rules(name):
    text = files('tool_approval.settings').joinpath('presets', f'{name}.yaml').read_text()

    document, _ = parse_yaml(text, source=name)

    assert document['sandbox'] == {'paths': {'project': {'root': '.', 'mode': 'ro' if name == 'read-only' else 'rw'}}}
    assert document.keys() == {'sandbox', 'shell'}
    assert document['shell'].keys() == {'rules'}
    assert {key for rule in document['shell']['rules'] for key in rule} <= {
        'pattern',
        'approval',
        'allowed',
        'sandbox_paths',
    }


@table('name', NAMES)
def test_every_rule_of_a_preset_decides_what_it_names(project, name):
    workspace = open_workspace(Settings(extends=(name,)), project, backend=Backend())
    rules = read_preset(name).shell.rules

    decided = [workspace.shell.explain(rule.pattern).deciding.reason for rule in rules]

    assert all(reason.startswith(rule.shown) for rule, reason in zip(rules, decided, strict=True))


@table('name', NAMES)
def test_without_an_os_sandbox_no_preset_lets_a_command_run_unasked(project, name):
    workspace = open_workspace(Settings(extends=(name,)), project, backend=UnconfinedBackend())

    decisions = {command: workspace.shell.explain(command).decision for command in commands(DECISIONS[name]['allow'])}

    assert set(decisions.values()) == {'ask'}


@pytest.mark.parametrize(
    ('text', 'decision'),
    [('{extends: [default], shell: {rules: [{pattern: make, approval: false}]}}', 'allow'), ('{}', 'ask')],
)
def test_without_an_os_sandbox_the_files_own_rules_hold(project, text, decision):
    workspace = open_workspace(parse_settings(text), project, backend=UnconfinedBackend())

    assert workspace.shell.explain('make').decision == decision


def test_under_read_only_the_file_tools_change_nothing(project):
    workspace = open_workspace(Settings(extends=('python', 'read-only', 'default')), project, backend=Backend())

    outcomes = {
        operation: workspace.files.decide(operation, 'src/a.py', *(['b'] if operation in ('move', 'copy') else []))
        for operation in ('write_file', 'edit_file', 'delete', 'move', 'copy', 'make_directory', 'read_file')
    }

    assert [name for name, decision in outcomes.items() if decision.outcome != 'block'] == ['read_file']


def test_all_presets_go_together(project):
    rules = expand(Settings(extends=NAMES)).shell.rules

    workspace = open_workspace(Settings(extends=NAMES), project, backend=Backend())

    assert all(isinstance(rule, PresetRule) for rule in rules)
    assert [rule.allowed for rule in rules] == sorted(rule.allowed for rule in rules)
    assert workspace.shell.explain('git commit -m x; pytest').decision == 'block'


@pytest.mark.skipif(not CONFINES, reason='nothing confines commands here')
def test_tests_of_the_project_run_unasked_and_can_write_nothing_in_it(tmp_path):
    desk = Desk(tmp_path / 'desk', 'extends: [default, python]', backend=choose_backend())
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


@pytest.mark.skipif(not CONFINES, reason='nothing confines commands here')
def test_what_checkers_build_is_kept_apart_from_the_project(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    names = ('CARGO_TARGET_DIR', 'COVERAGE_FILE', 'MYPY_CACHE_DIR', 'RUFF_CACHE_DIR')
    text = 'extends: [default]\nshell: {rules: [{pattern: mkdir -p, approval: false, arguments: any}]}'
    desk = Desk(tmp_path / 'desk', text, backend=choose_backend())

    shown, _ = desk.run(f'env | grep -E "^({"|".join(names)})="')
    unasked = asyncio.run(desk.workspace.shell.run('mkdir -p "$CARGO_TARGET_DIR" "$COVERAGE_FILE"; env'))

    private = dict(line.split('=', 1) for line in unasked.stdout.splitlines())
    assert unasked.stderr == ''
    assert all(private[name].startswith(str(tmp_path / 'cache' / 'tool-approval')) for name in names)
    assert all(name not in shown for name in names)


@pytest.mark.skipif(not CONFINES, reason='nothing confines commands here')
def test_pytest_runs_unasked_without_a_warning_about_its_cache(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('VIRTUAL_ENV', sys.prefix)
    monkeypatch.setenv('PATH', f'{sys.prefix}/bin:/usr/bin:/bin')
    desk = Desk(tmp_path / 'desk', 'extends: [default, python]', backend=choose_backend())
    (desk.folder / 'test_it.py').write_text('def test_it():\n    pass\n')

    first, was_asked = desk.run('pytest -q')
    # A project that has no cache, and in which every warning is an error.
    (desk.folder / 'pytest.ini').write_text('[pytest]\naddopts = -p no:cacheprovider --strict-config -W error\n')
    second, _ = desk.run('pytest -q')

    assert not was_asked
    assert ['1 passed' in told and 'arning' not in told for told in (first, second)] == [True, True]


def test_options_of_pytest_that_a_profile_passes_on_are_kept():
    caches = Caches(approved=Path('/a'), unasked=Path('/u'))

    profile = caches.open_in(OSProfile(environment=frozenset({'PYTEST_ADDOPTS'})), approved=False)

    assert passed_on(profile, {'PYTEST_ADDOPTS': '-v'})['PYTEST_ADDOPTS'] == '-v'


@pytest.mark.skipif(not CONFINES, reason='nothing confines commands here')
def test_under_read_only_no_command_that_is_approved_writes_in_the_directory(tmp_path):
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

    asked = [desk.run(command)[1] for command in writers]

    assert asked == [True] * len(writers)
    assert {path: path.read_bytes() for path in desk.folder.rglob('*') if path.is_file()} == before

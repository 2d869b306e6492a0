"""A root in a root: a path belongs to the innermost one, for commands as for the file tools."""

from pathlib import Path

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend
from tool_approval.settings import open_workspace, parse_settings

from tests.cases import decisions
from tests.tables import table

from .desk import Backend, Desk, confining

CASES = Path(__file__).with_name('nested_roots.toml')
SETTINGS = """
sandbox:
  paths:
    top: {root: ., mode: rw, write_approval: false}
    src: {root: src, mode: rw}
    ref: {root: src/ref, mode: ro}
    private: {root: private, mode: rw, write_approval: false, read_approval: true}
    closed: {root: closed, read_approval: blocked}
    texts: {root: texts, mode: rw, write_approval: false, suffixes: [.txt]}
    far: {root: ../far, mode: rw, write_approval: false}
shell:
  rules:
    - {pattern: tac, sandbox_paths: [top]}
    - {pattern: tac, approval: false}
    - {pattern: nl, approval: false, sandbox_paths: [closed]}
    - {pattern: wc, approval: false, sandbox_paths: [src]}
    - {pattern: cat, approval: false, sandbox_paths: [top]}
    - {pattern: head, approval: false, sandbox_paths: [top, private]}
    - {pattern: touch, approval: false, sandbox_paths: [top], arguments: any}
    - {pattern: cp, approval: false, sandbox_paths: [top], arguments: any}
    - {pattern: sed -i, approval: false, sandbox_paths: [top], arguments: any}
    - {pattern: sort -o, approval: false, sandbox_paths: [top], arguments: any}
    - {pattern: grep, approval: false, sandbox_paths: [top]}
    - {pattern: ls, approval: false, sandbox_paths: [top]}
    - {pattern: git stash push, approval: false, sandbox_paths: [top]}
"""


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / 'top'
    for name in ('src/ref', 'src/deep', 'private', 'closed', 'other', 'texts', '../far'):
        (top / name).mkdir(parents=True)
    for name in ('', 'src', 'src/ref', 'src/deep', 'private', 'closed', 'other', 'texts', '../far'):
        (top / name / 'a').write_text('x\n')
    (top / 'texts/a.txt').write_text('x\n')
    (top / 'to-private').symlink_to('private')
    (top / 'other/a-link').symlink_to('../private/a')
    (top / 'src/out').symlink_to('../private')
    (top / 'private/back').symlink_to('../src')
    (top / 'src/etc').symlink_to('/etc')
    (top / 'src/hard').hardlink_to(top / 'private/a')
    (top / 'src/loop').symlink_to('loop')
    return top


def decision(folder, command, backend=None):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=backend or Backend())
    return workspace.shell.explain(command).decision


@table('why, expected, command', decisions(CASES, 'commands'))
def test_a_rule_holds_below_a_root_that_it_names(folder, why, expected, command):
    assert decision(folder, command) == expected


@table('why, expected, command', decisions(CASES, 'unconfined'))
def test_without_an_os_sandbox_a_directory_above_a_root_that_asks_is_asked_about(folder, why, expected, command):
    assert decision(folder, command, UnconfinedBackend()) == expected


@table(
    'rule, command',
    [
        ('cat', 'cat private/a'),
        ('touch', 'touch src/b'),
        ('git stash push', 'git stash push src/b'),
        ('cat', 'cat /etc/passwd'),
        ('cat', 'cat "$x"'),
        ('cat', 'cd src; cat a'),
    ],
)
def test_the_reason_names_the_rule_and_its_roots(folder, rule, command):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())

    whole = f'the rule `{rule}` applies only to paths in `top`, and this command may use other paths'
    assert whole in [part.reason for part in workspace.shell.explain(command).parts]


@table('why, expected, call', decisions(CASES, 'files'))
def test_the_file_tools_decide_by_the_same_root(folder, why, expected, call):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())

    assert workspace.files.decide(*call.split()).outcome == expected


def test_missing_inner_root_keeps_its_approvals(folder):
    settings = parse_settings("""
        sandbox: {paths: {top: {root: .}, later: {root: later, read_approval: true}}}
        shell: {rules: [{pattern: cat, approval: false, sandbox_paths: [top]}]}
    """)

    workspace = open_workspace(settings, folder, backend=Backend())

    assert workspace.shell.explain('cat later/a').decision == 'ask'
    assert workspace.shell.explain('cat a').decision == 'allow'


def test_link_that_replaces_an_inner_root_is_not_followed(folder):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())
    before = workspace.shell.explain('cat other/a').decision

    (folder / 'private/a').unlink()
    (folder / 'private/back').unlink()
    (folder / 'private').rmdir()
    (folder / 'private').symlink_to('/etc')

    assert before == 'allow'
    assert workspace.shell.explain('cat private/passwd').decision == 'ask'


@confining
def test_os_sandbox_enforces_the_decisions_about_inner_roots(folder):
    desk = Desk(folder, SETTINGS, backend=choose_backend())

    read, secret, write = (
        desk.run(command) for command in ('cat src/a', 'grep -rl x . --include=a', 'echo new > src/a')
    )

    assert read == ('x', False)
    assert not secret[1]
    assert {'./a', './src/a', './other/a'} <= set(secret[0].split())
    assert './private/a' not in secret[0]
    assert write[1]
    assert (folder / 'src/a').read_text() == 'new\n'

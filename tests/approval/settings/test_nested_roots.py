"""A root in a root: a path belongs to the innermost one, for commands as for the file tools."""

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend
from tool_approval.settings import open_workspace, parse_settings

from tests.tables import table

from .desk import Backend, Desk

CONFINES = not isinstance(choose_backend(require=False), UnconfinedBackend)
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
"""


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / 'top'
    for name in ('src/ref', 'src/deep', 'private', 'closed', 'other', 'texts', '../far'):
        (top / name).mkdir(parents=True)
    for name in (
        'a',
        'src/a',
        'src/ref/a',
        'src/deep/a',
        'private/a',
        'closed/a',
        'other/a',
        'texts/a',
        'texts/a.txt',
        '../far/a',
    ):
        (top / name).write_text('x\n')
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


@table(
    'command, expected',
    [
        ('cat a', 'allow'),
        ('cat src/a', 'allow'),
        ('cat src/ref/a src/deep/a other/a', 'allow'),
        ('cat private/a', 'ask'),
        ('cat a private/a', 'ask'),
        ('cat closed/a', 'ask'),
        ('cat ../far/a', 'ask'),
        ('cat /etc/passwd', 'ask'),
        ('head private/a', 'allow'),
        ('head closed/a', 'ask'),
        ('wc a', 'ask'),
        ('wc src/a', 'allow'),
        ('wc src/ref/a', 'allow'),
        ('wc src/../a', 'ask'),
        ('nl closed/a', 'ask'),
        # An outer rule that asks does so within as well, whatever stands behind it.
        ('tac a', 'ask'),
        ('tac src/a', 'ask'),
        ('tac private/a', 'ask'),
        # What is written, under the approvals of the innermost root.
        ('touch other/b', 'allow'),
        ('touch src/b', 'ask'),
        ('touch src/ref/b', 'ask'),
        ('touch private/b', 'ask'),
        ('cp other/a other/b', 'allow'),
        ('cp private/a other/b', 'ask'),
        ('cp src/ref/a other/b', 'ask'),
        ('sed -i s/a/b/ other/a', 'allow'),
        ('sed -i s/a/b/ src/a', 'ask'),
        ('sort -o other/b src/a', 'allow'),
        ('sort -o src/b other/a', 'ask'),
        ('cat src/a > other/b', 'allow'),
        ('cat other/a > src/b', 'ask'),
        ('cat other/a > "$x"', 'ask'),
        # Where a path leads counts, not how it is written.
        ('cat private/../a', 'allow'),
        ('cat src/../private/a', 'ask'),
        ('cat ./src//ref/../../private/a', 'ask'),
        ('cat to-private/a', 'ask'),
        ('cat other/a-link', 'ask'),
        ('cat src/out/a', 'ask'),
        ('cat private/back/a', 'allow'),
        ('touch private/back/b', 'ask'),
        ('cat src/etc/passwd', 'ask'),
        ('cat src/hard', 'ask'),
        ('cat texts/a.txt', 'allow'),
        ('cat texts/a', 'ask'),
        ('touch texts/b.txt', 'allow'),
        ('touch texts/b', 'ask'),
        ('touch texts/.git/config', 'ask'),
        ('cat src/loop', 'ask'),
        ('cat "$x"', 'ask'),
        ('cat src/*', 'ask'),
        ('cd private && cat a', 'ask'),
        ('ls', 'allow'),
        ('ls src', 'allow'),
        ('ls private', 'ask'),
        ('grep -r x .', 'allow'),
        ('xargs cat', 'ask'),
        ('env cat src/a', 'allow'),
        ('env cat private/a', 'ask'),
    ],
)
def test_a_rule_holds_below_a_root_that_it_names(folder, command, expected):
    assert decision(folder, command) == expected


@table(
    'command, expected',
    [('grep -r x .', 'ask'), ('ls', 'ask'), ('grep -r x src', 'allow'), ('cat a', 'allow'), ('cat private/a', 'ask')],
)
def test_without_an_os_sandbox_a_directory_above_a_root_that_asks_is_asked_about(folder, command, expected):
    assert decision(folder, command, UnconfinedBackend()) == expected


@table(
    'command, reason',
    [
        (
            'cat private/a',
            'the rule `cat` applies only to paths in `top`, and the root `private` inside requires approval',
        ),
        ('touch src/b', 'the rule `touch` applies only to paths in `top`, and the root `src` inside requires approval'),
        ('cat /etc/passwd', 'the rule `cat` applies only to paths in `top`, and this command may use others'),
        ('cat "$x"', 'the rule `cat` applies only to paths in `top`, and this command may use others'),
        ('cd src; cat a', 'the rule `cat` applies only to paths in `top`, and this command may use others'),
    ],
)
def test_the_reason_names_the_root_that_asks(folder, command, reason):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())

    assert reason in [part.reason for part in workspace.shell.explain(command).parts]


@table(
    'operation, path, expected',
    [
        ('read_file', 'src/a', 'allow'),
        ('read_file', 'src/ref/a', 'allow'),
        ('read_file', 'private/a', 'ask'),
        ('read_file', 'private/back/a', 'allow'),
        ('read_file', 'src/out/a', 'ask'),
        ('read_file', 'src/../private/a', 'ask'),
        ('read_file', 'other/a-link', 'ask'),
        ('read_file', 'closed/a', 'block'),
        ('read_file', 'src/etc/passwd', 'block'),
        ('read_file', 'src/loop', 'block'),
        ('write_file', 'other/b', 'allow'),
        ('write_file', 'src/b', 'ask'),
        ('write_file', 'src/ref/b', 'block'),
        ('write_file', 'src/ref/../b', 'ask'),
        ('write_file', 'private/b', 'allow'),
        ('write_file', 'private/back/b', 'ask'),
        ('delete', 'src', 'block'),
    ],
)
def test_the_file_tools_decide_by_the_same_root(folder, operation, path, expected):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())

    assert workspace.files.decide(operation, path).outcome == expected


def test_a_root_within_that_is_missing_keeps_its_rules(folder):
    settings = parse_settings("""
        sandbox: {paths: {top: {root: .}, later: {root: later, read_approval: true}}}
        shell: {rules: [{pattern: cat, approval: false, sandbox_paths: [top]}]}
    """)

    workspace = open_workspace(settings, folder, backend=Backend())

    assert workspace.shell.explain('cat later/a').decision == 'ask'
    assert workspace.shell.explain('cat a').decision == 'allow'


def test_a_link_that_takes_the_place_of_a_root_within_is_not_followed(folder):
    workspace = open_workspace(parse_settings(SETTINGS), folder, backend=Backend())
    before = workspace.shell.explain('cat other/a').decision

    (folder / 'private/a').unlink()
    (folder / 'private/back').unlink()
    (folder / 'private').rmdir()
    (folder / 'private').symlink_to('/etc')

    assert before == 'allow'
    assert workspace.shell.explain('cat private/passwd').decision == 'ask'


@pytest.mark.skipif(not CONFINES, reason='nothing confines commands here')
def test_what_is_decided_is_what_the_os_sandbox_lets_happen(folder):
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

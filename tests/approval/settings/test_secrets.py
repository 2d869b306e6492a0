"""Files that hold secrets are not there for confined commands, and are asked about where nothing confines them."""

import os
import subprocess

import pytest
from tool_approval.settings import RUN_SHELL, load_settings, open_workspace
from tool_approval.tools.file_sandbox.secrets import SecretFiles

from .desk import Backend, Desk

SETTINGS = """\
    sandbox:
      paths:
        work: {root: ., mode: rw, write_approval: false}
    shell:
      rules:
        - {pattern: cat, approval: false, sandbox_paths: [work]}
        - {pattern: grep, approval: false, sandbox_paths: [work]}
        - {pattern: head, approval: false}
        - {pattern: touch, approval: false}
"""
SECRETS = {
    '.env': 'A=s3cret\n',
    '.ENV': 'A=s3cret\n',
    'sub/.env.local': 'A=s3cret\n',
    'sub/deep/id_rsa': 's3cret\n',
    'server.pem': '-----BEGIN PRIVATE KEY-----\ns3cret\n',
    '.npmrc': '//r/:_authToken=s3cret\n',
    '.netrc': 'password s3cret\n',
    '.aws/credentials': 's3cret\n',
    '.ssh/config': 's3cret\n',
}


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def work(confined_folder, monkeypatch):
    monkeypatch.setenv('HOME', str(confined_folder / 'home'))
    work = confined_folder / 'work'
    (work / '.git').mkdir(parents=True)
    fill(work, {**SECRETS, '.env.example': 'A=example\n', 'plain.txt': 'plain\n'})
    return work


@pytest.fixture
def desk(work):
    return Desk(work, SETTINGS)


LOOK = (
    'cat .env .ENV */.* sub/deep/* *.pem .npmrc .netrc .aws/* .ssh/* plain.txt .env.example; grep -r "" . 2>/dev/null'
)


def test_confined_a_command_reads_no_secret_and_all_the_rest(desk):
    for said in (desk.approved(LOOK), desk.run('head .env sub/.env.local server.pem plain.txt .env.example')[0]):
        assert 's3cret' not in said
        assert 'plain' in said
        assert 'A=example' in said
    assert desk.run('cat .env')[1] is False
    assert 'Permission denied' in desk.run('cat .env')[0]


def test_confined_command_that_was_refused_a_secret_reports_that_no_access_helps(desk):
    note = '[No command can read {}, even with approval or extra access: the file may hold secrets. Tell the user.]'
    assert note.format('.env') in desk.run('cat .env')[0]
    assert note.format('sub/.env.local') in desk.approved('cat ./sub/.env.local')
    assert 'may hold secrets' not in desk.approved('echo ".env"; echo "closed: Permission denied"; false')


def test_confined_a_secret_cannot_be_moved_linked_or_replaced_to_be_read(desk, work):
    said = desk.approved(
        'mv .env x; cat x; mv sub other; cat other/.env.local; ln .env y; cat y; ln -s .env z; cat z; cp .env c; '
        'cat /proc/self/cwd/.env /proc/self/root"$PWD"/.env; rm -f .env; rm -rf .ssh; echo x > .env',
    )

    assert 's3cret' not in said
    assert {name: (work / name).read_text() for name in SECRETS} == SECRETS


def test_confined_a_secret_that_appears_later_is_not_read(desk, work):
    assert desk.approved('cat plain.txt') == 'plain'

    fill(work, {'new/.env': 's3cret\n'})
    (work / 'plain.txt').write_text('-----BEGIN PRIVATE KEY-----s3cret')
    (work / 'plain.txt').rename(work / 'late.pem')

    assert 's3cret' not in desk.approved('cat new/.env late.pem')


def test_confined_links_and_other_names_of_a_secret_are_not_read(work):
    fill(work, {'conf/dev': 's3cret\n', 'conf/prod': 's3cret\n'})
    (work / 'app').mkdir()
    (work / 'app' / '.env').symlink_to('../conf/dev')
    (work / 'app' / 'link').symlink_to('../.env')
    os.link(work / 'conf' / 'prod', work / 'app' / '.env.prod')
    desk = Desk(work, SETTINGS)

    assert 's3cret' not in desk.approved('cat app/.env app/link app/.env.prod conf/dev conf/prod')
    # Files beside the link stay writable.
    assert desk.approved('touch app/x && ls app/x') == 'app/x'


def test_confined_settings_hide_more_files_and_make_secrets_visible(work):
    fill(work, {'config/prod.yaml': 's3cret\n', 'config/dev.yaml': 'dev\n'})
    more = 'sandbox:\n      hidden: ["config/prod.*"]\n      visible: [.npmrc]'
    desk = Desk(work, SETTINGS.replace('sandbox:', more, 1))

    said = desk.approved('cat config/* .npmrc')

    assert said.count('s3cret') == 1
    assert '_authToken' in said
    assert 'dev' in said
    assert desk.use('read_file', path='config/prod.yaml')[1] is True
    assert desk.use('read_file', path='.npmrc') == (SECRETS['.npmrc'], False)


def test_confined_untrusted_settings_hide_files_but_make_none_visible(work):
    more = 'sandbox:\n      hidden: [plain.txt]\n      visible: [.env, .npmrc]'
    desk = Desk(work, SETTINGS.replace('sandbox:', more, 1), named=False)

    said = desk.approved(LOOK)

    assert 's3cret' not in said
    assert 'plain' not in said.replace('plain.txt', '')


def test_confined_credentials_of_a_toolchain_are_not_read(work):
    tools = work.parent / 'tools'
    fill(
        tools, {'credentials.toml': 's3cret', '.npmrc': '_auth=s3cret', '.env': 's3cret', 'bin/x': 'echo', 'a': 'open'}
    )
    (tools / '.cargo').mkdir()
    (tools / 'credentials.toml').rename(tools / '.cargo' / 'credentials.toml')
    desk = Desk(work, SETTINGS.replace('paths:', f'toolchains: [{tools}]\n      paths:', 1))

    said = desk.approved(f'cat {tools}/a {tools}/.npmrc {tools}/.env {tools}/.cargo/*')

    assert 's3cret' not in said
    assert 'open' in said


def test_confined_too_many_secrets_keep_commands_from_running(desk, work):
    for number in range(501):
        (work / f'.env.{number}').touch()

    assert 'cannot confine it' in desk.approved('true')


def test_note_names_a_search_for_secrets_that_was_cut_short(work, monkeypatch):
    monkeypatch.setitem(SecretFiles.__init__.__kwdefaults__, 'most_folders', 1)

    workspace = open_workspace(load_settings(directory=work), work, backend=Backend())

    assert any('too many folders to search for secrets' in note for note in workspace.notes)


def test_without_an_os_sandbox_a_rule_does_not_cover_secrets(work, no_os_sandbox):
    (work / 'alias').symlink_to('.env')
    desk = Desk(work, SETTINGS)
    decide = desk.workspace.shell.explain

    asked = [
        'cat .env',
        'cat alias',
        'cat sub/../.env',
        'grep -r x .',
        'grep -r x sub',
        'cat server.pem',
        'cat .ssh/config',
    ]
    free = ['cat plain.txt', 'cat .env.example', 'grep x plain.txt']
    assert [command for command in asked if decide(command).decision != 'ask'] == []
    assert [command for command in free if decide(command).decision != 'allow'] == []
    assert desk.run('cat .env')[1] is True


def test_without_an_os_sandbox_the_question_says_that_secrets_can_be_read(work, no_os_sandbox):
    desk = Desk(work, SETTINGS)

    desk.run('make all')

    [request] = desk.ui.requests
    assert request.reason.endswith(
        '; without an OS sandbox, the command can read secrets, such as `.env` and private keys'
    )


def test_confined_question_does_not_mention_secrets(desk):
    desk.approved('true')

    assert 'secrets' not in desk.ui.requests[0].reason


def test_secrets_are_hidden_in_the_profile_of_the_command(work):
    desk = Desk(work, SETTINGS, backend=Backend())
    desk.run('head plain.txt')

    [profile] = desk.workspace.backend.profiles
    assert {f'{work}/{name}' for name in ('.env', '.netrc', 'server.pem')} <= set(profile.hidden)


def test_confined_access_to_git_shows_no_secret_and_takes_none_away(work):
    subprocess.run(['git', 'init', '-q', work], check=True)
    desk = Desk(work, SETTINGS)
    arguments = {'command': f'true "$(id)"; {LOOK}; mv .env x; rm -rf .env sub; touch new', 'access': ['git']}

    said, asked = desk._call(desk.workspace.shell, RUN_SHELL, arguments)

    assert asked
    assert 's3cret' not in said
    assert 'A=example' in said
    assert {name: (work / name).read_text() for name in SECRETS} == SECRETS


def test_confined_git_adds_no_secret(work):
    subprocess.run(['git', 'init', '-q', work], check=True)
    desk = Desk(work, SETTINGS)

    everything = approved_git(desk, 'git add -A')
    one = approved_git(desk, 'git add plain.txt')

    assert 'can only add regular files' in everything
    assert 'exit status' not in one
    tracked = subprocess.run(['git', '-C', work, 'ls-files'], check=True, capture_output=True, text=True).stdout
    assert tracked.split() == ['plain.txt']


def approved_git(desk, command):
    said, asked = desk.run(command)
    assert asked, said
    return said

"""The tools as the settings say, with the kernel behind them where a test says `confined`."""

import asyncio
import os
import shutil

import pytest
from tool_approval.os_sandbox import (
    Access,
    OSProfile,
    OSSandboxError,
    OSSandboxUnavailable,
    RefusingBackend,
    Root,
    UnconfinedBackend,
)
from tool_approval.settings import Settings, load_settings, open_workspace, parse_settings

from tool_approval import ApprovalConfigError

from .desk import Backend, Desk, settings_of

SETTINGS = """\
    sandbox:
      paths:
        work: {root: ., mode: rw, write_approval: false}
        priv: {root: priv, mode: rw, read_approval: true}
      require_os_sandbox: true
    shell:
      rules:
        - {pattern: cat, approval: false}
        - {pattern: cp, approval: false}
        - {pattern: touch, approval: false}
        - {pattern: mkdir, approval: false}
        - {pattern: mv, approval: false}
        - {pattern: ls, approval: false}
"""


@pytest.fixture
def confined(confined_folder):
    return confined_folder


def desk_in(folder, text=SETTINGS, **options):
    work = folder / 'work'
    (work / 'priv' / 'below').mkdir(parents=True)
    (work / 'priv' / 'secret.txt').write_text('the secret\n')
    (work / 'evil').write_text('evil\n')
    (work / '.git' / 'hooks').mkdir(parents=True)
    (work / '.git' / 'config').write_text('[core]\n')
    return Desk(work, text, **options)


@pytest.fixture
def desk(confined):
    return desk_in(confined)


def test_confined_pre_approved_command_does_not_read_a_root_that_asks(desk):
    said, asked = desk.run('cat pri[v]/secret.txt')

    assert not asked
    assert 'the secret' not in said
    assert 'No such file or directory' in said or 'Permission denied' in said
    assert desk.use('read_file', path='priv/secret.txt')[1] is True


def test_confined_approved_command_reads_a_root_that_asks(desk):
    assert desk.run('head priv/secret.txt') == ('the secret', True)
    assert desk.run('head priv/secret.txt > priv/below/copy && cat priv/below/copy') == ('the secret', True)


def test_confined_pre_approved_command_writes_where_writing_is_free(desk):
    assert desk.run('cp evil good') == ('[no output]', False)
    assert (desk.folder / 'good').read_text() == 'evil\n'


def attempt(desk, command, *, is_approved):
    """Run it pre-approved, or inside a command that nothing pre-approves."""
    said, asked = desk.run(f'true "$(id)"; {command}' if is_approved else command)
    assert asked is is_approved, said
    return said


def was_stopped(said):
    """Whether a command failed, or what it made was moved away and named."""
    return 'exit status' in said or '[moved ' in said


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
@pytest.mark.parametrize(
    'command',
    [
        'cp evil .git/hooks/pre-commit',
        'cp evil .git/config',
        'mv .git other',
        'cp evil approvals.yaml',
        'mv evil approvals.yaml',
        'cp evil alias',
        'mv approvals.yaml other.yaml',
        'cp evil {folder}/approvals.yaml',
    ],
)
def test_confined_control_files_are_not_written(desk, command, is_approved):
    (desk.folder / 'alias').symlink_to('approvals.yaml')
    before = (desk.folder / 'approvals.yaml').read_text()

    said = attempt(desk, command.format(folder=desk.folder), is_approved=is_approved)

    assert 'exit status' in said
    assert (desk.folder / 'approvals.yaml').read_text() == before
    assert (desk.folder / '.git' / 'config').read_text() == '[core]\n'
    assert list((desk.folder / '.git' / 'hooks').iterdir()) == []


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
def test_confined_the_folder_of_the_settings_is_not_replaced(confined, is_approved):
    desk = desk_in(confined, SETTINGS.replace('root: .,', 'root: ..,'))
    before = (desk.folder / 'approvals.yaml').read_text()

    said = attempt(desk, f'mv {desk.folder} {confined}/other', is_approved=is_approved)

    assert 'exit status' in said
    assert (desk.folder / 'approvals.yaml').read_text() == before


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
@pytest.mark.parametrize(
    ('named', 'command'),
    [
        ('sub/conf/policy.yaml', 'mv sub/conf sub/other'),
        ('sub/conf/policy.yaml', 'mv sub other'),
        ('sub/conf/policy.yaml', 'mv -T evil_folder sub/conf'),
        ('sub/conf/policy.yaml', 'cp evil sub/conf/policy.yaml'),
        ('sub/conf/policy.yaml', 'cp evil real/policy.yaml'),
        ('sub/conf/policy.yaml', 'mv real other'),
        ('sub/conf/../conf_of_it.yaml', 'mv sub/conf sub/other'),
        ('sub/conf/../conf_of_it.yaml', 'mv -T evil conf_of_it.yaml'),
        ('sub/policy.yaml', 'mv -T evil sub/policy.yaml'),
    ],
)
def test_confined_no_link_on_the_way_to_the_settings_that_were_named_is_replaced(
    desk, monkeypatch, named, command, is_approved
):
    """Attack: the next start with the same `--config` reads what the agent wrote, and trusts it."""
    work = desk.folder
    for folder in ('real', 'sub', 'evil_folder'):
        (work / folder).mkdir()
    (work / 'sub/conf').symlink_to('../real')
    (work / 'sub/policy.yaml').symlink_to('../real/policy.yaml')
    for file in ('real/policy.yaml', 'conf_of_it.yaml'):
        (work / file).write_text((work / 'approvals.yaml').read_text())
    monkeypatch.chdir(work)
    desk.open(load_settings(named, directory='.', named=True))
    before = (work / named).read_text()

    said = attempt(desk, command, is_approved=is_approved)

    assert was_stopped(said), said
    assert (work / named).read_text() == before
    assert (work / 'sub/conf').is_symlink()
    assert desk.use('delete', path='sub/conf' if 'conf/' in named else 'sub/policy.yaml')[0].endswith('may change it.')


def test_confined_note_names_a_link_to_the_settings_that_freezes_its_folder(desk):
    (desk.folder / 'sub').mkdir()
    (desk.folder / 'sub/conf').symlink_to('..')

    desk.open(load_settings(desk.folder / 'sub/conf/approvals.yaml', directory=desk.folder, named=True))

    assert (
        f'commands cannot make, rename or delete anything directly in {desk.folder}/sub while conf is a symbolic link; '
        'to lift this limit, make a real file or folder for each name'
    ) in desk.workspace.notes
    assert desk.run('touch good') == ('[no output]', False)


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
@pytest.mark.parametrize('command', ['cp evil parts/wt/config', 'cp evil common/config', 'mv -T evil l', 'mv l k'])
@pytest.mark.parametrize('git', ['gitdir: l/../wt\n', None])
def test_confined_git_folders_reached_through_links_are_not_written(desk, command, git, is_approved):
    work = desk.folder
    shutil.rmtree(work / '.git')
    for folder in ('parts/deep', 'parts/wt', 'common'):
        (work / folder).mkdir(parents=True)
    (work / 'l').symlink_to('parts/deep' if git else 'parts/wt')
    (work / 'parts/wt/commondir').write_text('../../common\n')
    if git:
        (work / '.git').write_text(git)
    else:
        (work / '.git').symlink_to('l')
    desk.open(desk.loaded)

    said = attempt(desk, command, is_approved=is_approved)

    assert was_stopped(said), said
    assert (work / 'l').is_symlink()
    assert sorted(path.name for path in (work / 'parts/wt').iterdir()) == ['commondir']
    assert list((work / 'common').iterdir()) == []


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
@pytest.mark.parametrize('name', ['.git', 'log/audit.jsonl'])
def test_confined_a_control_file_that_is_missing_is_not_made(desk, name, is_approved):
    shutil.rmtree(desk.folder / '.git')
    (desk.folder / 'log').mkdir()
    desk.open(desk.loaded, protected=['log/audit.jsonl'])

    said = attempt(desk, f'mkdir {name}', is_approved=is_approved)

    assert was_stopped(said), said
    assert not (desk.folder / name).exists()


@pytest.mark.parametrize('is_approved', [False, True], ids=['pre-approved', 'approved'])
@pytest.mark.parametrize('name', ['approvals.yaml', 'approvals.yml', 'approvals.toml'])
def test_confined_settings_that_are_missing_are_not_made(desk, name, is_approved):
    (desk.folder / 'approvals.yaml').unlink()
    desk.open(desk.loaded.settings)

    said = attempt(desk, f'touch {name}', is_approved=is_approved)

    assert was_stopped(said), said
    assert not (desk.folder / name).exists()


def test_confined_the_state_of_the_user_is_neither_read_nor_written(confined, monkeypatch):
    state = confined / 'work' / 'home' / 'tool-approval'
    state.mkdir(parents=True)
    (state / 'approvals.json').write_text('key')
    monkeypatch.setenv('XDG_STATE_HOME', str(state.parent))
    desk = desk_in(confined)

    assert 'key' not in desk.run('head home/tool-approval/approvals.json')[0]
    assert 'exit status' in desk.run('cp evil home/tool-approval/approvals.json')[0]
    assert 'is protected' in desk.use('write_file', path='home/tool-approval/approvals.json', content='x')[0]
    assert (state / 'approvals.json').read_text() == 'key'


def test_confined_a_root_that_is_a_link_in_the_working_directory_opens_nothing(confined):
    (confined / 'outside').mkdir()
    (confined / 'outside' / 'secret.txt').write_text('the secret\n')
    text = SETTINGS.replace('root: .,', 'root: bent,')
    (confined / 'work').mkdir()
    (confined / 'work' / 'bent').symlink_to('../outside')
    (confined / 'work' / 'priv').mkdir()
    desk = Desk(confined / 'work', text)

    said, asked = desk.run(f'true "$(id)"; cat {confined}/outside/secret.txt')

    assert asked
    assert 'the secret' not in said
    assert (
        f'{desk.folder}/bent is a symbolic link in the working directory, so commands cannot use it'
        in desk.workspace.notes
    )


def test_confined_there_is_no_network_unless_it_is_configured(desk):
    assert desk.run('head -n 3 /proc/net/dev')[0].count('\n') == 2
    closed = desk.run('grep -c . /proc/net/route')[0]

    desk.open(parse_settings('{sandbox: {paths: {work: {root: .}}}, shell: {network: true}}'))

    assert closed.startswith('1') or 'exit status' in closed
    assert desk.run('readlink /proc/self/ns/net')[0] == os.readlink('/proc/self/ns/net')


def test_confined_untrusted_settings_let_no_command_run_unasked(confined):
    desk = desk_in(confined, named=False)

    assert desk.loaded.trusted is False
    assert desk.run('cat priv/secret.txt') == ('the secret', True)
    assert desk.use('read_file', path='evil') == ('evil\n', True)


def test_confined_a_file_with_no_roots_opens_no_directory(confined):
    desk = desk_in(confined, '{sandbox: {paths: {}}, shell: {}}')

    said, asked = desk.run('cat evil')

    assert asked
    assert 'No such file or directory' in said


def test_confined_more_folders_can_be_made_readable(confined):
    tools = confined / 'tools'
    tools.mkdir()
    (tools / 'data').write_text('42\n')
    desk = desk_in(confined)
    assert '42' not in desk.run(f'cat {tools}/data')[0]

    desk.open(desk.loaded, readable=[str(tools)])

    assert desk.run(f'cat {tools}/data') == ('42', False)
    assert 'exit status' in desk.run(f'cp evil {tools}/data')[0]


def test_confined_only_the_variables_that_are_listed_reach_a_command(confined, monkeypatch):
    monkeypatch.setenv('MY_SETTING', 'given')
    monkeypatch.setenv('OTHER', 'not given')
    desk = desk_in(
        confined, SETTINGS + '        - {pattern: env, approval: false}\n      environment: [MY_SETTING, ABSENT]\n'
    )

    said, _ = desk.run('env')

    assert 'MY_SETTING=given' in said
    assert 'OTHER' not in said
    assert 'ABSENT' not in said


def test_confined_a_certificate_authority_of_the_user_is_readable(confined, monkeypatch):
    (confined / 'ca.pem').write_text('a certificate\n')
    monkeypatch.setenv('SSL_CERT_FILE', str(confined / 'ca.pem'))
    monkeypatch.setenv('CURL_CA_BUNDLE', str(confined / 'work' / 'own.pem'))
    monkeypatch.setenv('PIP_CERT', '/usr/share/ca.pem')
    monkeypatch.setenv('SSL_CERT_DIR', str(confined))
    desk = desk_in(confined, SETTINGS + '        - {pattern: env, approval: false}\n')

    said, _ = desk.run('env')

    assert f'SSL_CERT_FILE={confined}/ca.pem' in said
    assert f'CURL_CA_BUNDLE={desk.folder}/own.pem' in said
    assert 'PIP_CERT=/usr/share/ca.pem' in said
    assert 'SSL_CERT_DIR' not in said
    assert desk.run(f'cat {confined}/ca.pem') == ('a certificate', False)


@pytest.mark.parametrize('place', ['work/ca.pem', 'ca.pem', 'up/../ca.pem', ''])
def test_a_link_as_certificate_authority_opens_nothing(tmp_path, monkeypatch, place):
    (tmp_path / 'work').mkdir()
    (tmp_path / 'up').mkdir()
    (tmp_path / 'secret').write_text('secret')
    for name in ('work/ca.pem', 'ca.pem'):
        (tmp_path / name).symlink_to(tmp_path / 'secret')
    monkeypatch.setenv('SSL_CERT_FILE', str(tmp_path / place) if place else 'secret')
    backend = Backend()

    workspace = open_workspace(settings_of(SETTINGS), tmp_path / 'work', backend=backend)
    asyncio.run(workspace.shell('true'))

    [profile] = backend.profiles
    assert profile.access(str(tmp_path / 'secret')) is Access.NONE


@pytest.mark.parametrize('name', ['LD_PRELOAD', 'BASH_ENV', 'PATH', 'LC_ALL', 'PS4', 'A B', 'A=B', '', 'É'])
def test_a_variable_that_decides_what_runs_cannot_be_passed(name):
    with pytest.raises(ApprovalConfigError, match='cannot be passed on to commands'):
        parse_settings(f'shell: {{environment: ["{name}"]}}')


@pytest.mark.parametrize('name', ['GITHUB_TOKEN', 'api_key', 'PGPASSWORD', 'AWS_SECRET_ACCESS_KEY', 'DB_PASS'])
def test_a_variable_with_the_name_of_a_secret_has_to_be_made_visible(name):
    with pytest.raises(ApprovalConfigError, match='has the name of a secret'):
        parse_settings(f'shell: {{environment: [{name}]}}')

    settings = parse_settings(f'{{sandbox: {{visible: [{name}]}}, shell: {{environment: [{name}]}}}}')

    assert settings.shell.environment == (name,)


def test_an_explicit_profile_narrows(tmp_path):
    backend = Backend()
    explicit = OSProfile(roots=(Root(path=str(tmp_path / 'work' / 'priv'), access=Access.READ),))
    desk = desk_in(tmp_path, backend=backend, explicit=explicit)

    desk.run('printf a')

    [profile] = backend.profiles
    assert profile.access(str(desk.folder / 'priv' / 'x')) is Access.READ
    assert profile.access(str(desk.folder / 'evil')) is Access.NONE


def test_missing_required_os_sandbox_is_an_error_at_the_start(tmp_path, no_os_sandbox):
    with pytest.raises(OSSandboxUnavailable, match='no OS sandbox works here, and the configuration requires one'):
        desk_in(tmp_path)


def test_missing_required_os_sandbox_makes_tools_refuse_if_configured(tmp_path, no_os_sandbox):
    desk = desk_in(
        tmp_path, SETTINGS.replace('true\n    shell', 'true\n      os_sandbox_fallback: refuse_tools\n    shell')
    )

    assert isinstance(desk.workspace.backend, RefusingBackend)
    assert 'File and shell tools are refused' in desk.run('cat evil')[0]


def test_missing_os_sandbox_that_is_not_required_leaves_commands_unconfined(tmp_path, no_os_sandbox):
    desk = desk_in(tmp_path, SETTINGS.replace('require_os_sandbox: true', 'require_os_sandbox: false'))

    assert isinstance(desk.workspace.backend, UnconfinedBackend)
    assert desk.run('cat evil') == ('evil', False)


def test_required_os_sandbox_cannot_be_switched_off(tmp_path):
    with pytest.raises(OSSandboxUnavailable, match='so commands cannot run without one'):
        desk_in(tmp_path, backend=UnconfinedBackend())


def test_without_settings_everything_in_the_working_directory_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.txt').touch()

    workspace = open_workspace(Settings(), backend=Backend())

    decided = [workspace.files.decide(name, 'a.txt').outcome for name in ('read_file', 'write_file')]
    assert decided == ['ask', 'ask']
    assert workspace.files.decide('read_file', '../a.txt').outcome == 'block'
    assert workspace.shell.explain('ls').decision == 'ask'


def test_untrusted_roots_are_judged_by_the_directory_that_is_opened(tmp_path):
    (tmp_path / 'other').mkdir()
    text = f'{{sandbox: {{paths: {{a: {{root: {tmp_path / "work" / "priv"}}}, b: {{root: .}}}}}}}}'
    desk = desk_in(tmp_path, text, named=False, backend=Backend())
    assert set(desk.workspace.settings.sandbox.paths) == {'a', 'b'}

    workspace = open_workspace(desk.loaded, tmp_path / 'other', backend=Backend())

    assert set(workspace.settings.sandbox.paths) == {'b'}


def test_redirection_is_pre_approved_where_writing_is(tmp_path):
    desk = desk_in(tmp_path, SETTINGS + '    tools: {}\n', backend=Backend())
    explain = desk.workspace.shell.explain

    assert explain('cat evil > good').decision == 'allow'
    assert explain('cat evil > priv/good').decision == 'ask'
    assert explain('cat evil > ../good').decision == 'ask'
    assert explain('cat evil > approvals.yaml').decision == 'ask'
    assert explain('cat evil > .git/config').decision == 'ask'


def test_rule_for_a_root_excludes_inner_roots_and_other_folders(tmp_path):
    text = SETTINGS.replace('pattern: cat, ', 'pattern: cat, sandbox_paths: [work], ')
    desk = desk_in(tmp_path, text, backend=Backend())
    explain = desk.workspace.shell.explain

    assert explain('cat evil').decision == 'allow'
    assert explain('cat priv/secret.txt').decision == 'ask'
    assert explain('cat ../evil').decision == 'ask'


def test_rule_for_an_unknown_root_is_an_error(tmp_path):
    settings = settings_of('{shell: {rules: [{pattern: cat, sandbox_paths: [nowhere]}]}}')

    with pytest.raises(ApprovalConfigError, match='there is no root `nowhere`'):
        open_workspace(settings, tmp_path, backend=Backend())


def test_missing_working_directory_is_an_error_at_the_start(confined):
    with pytest.raises(OSSandboxError, match='the working directory is not a folder'):
        open_workspace(Settings(), confined / 'nowhere')


def test_file_tools_do_not_write_protected_files(tmp_path):
    desk = desk_in(tmp_path, backend=Backend())
    (desk.folder / 'log').mkdir()
    desk.open(desk.loaded, backend=Backend(), protected=['log/audit.jsonl', desk.folder / 'store.json'])
    (desk.folder / 'alias').symlink_to('log/audit.jsonl')

    for path in ('log/audit.jsonl', 'store.json', 'alias', 'LOG/audit.jsonl', '.git/hooks/x', 'approvals.yml'):
        said, asked = desk.use('write_file', path=path, content='x')
        assert not asked
        assert 'protected' in said or 'no tool may' in said or 'another path' in said or 'not a directory' in said
    assert 'is protected' in desk.use('move', path='log', dest='other')[0]
    assert sorted(path.name for path in (desk.folder / 'log').iterdir()) == []

"""A command gets the extra access that the approver was shown, for this call alone."""

import asyncio
import os
import subprocess
from dataclasses import replace

import pytest
from tool_approval.os_sandbox import Access, BubblewrapBackend, UnconfinedBackend
from tool_approval.settings import RUN_SHELL
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import ScriptedUI

from tests.approval.os_sandbox.house import PYTHON, skip_reason
from tests.approval.parts import ListSink
from tests.hello import hello_server
from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    execute_tool,
)

from .desk import Desk

SETTINGS = """\
    sandbox:
      paths: {work: {root: ., mode: rw}, secret: {root: secret, mode: rw, read_approval: blocked}}
    shell:
      rules:
        - {pattern: echo, approval: false}
        - {pattern: 'false', approval: false}
        - {pattern: rm, allowed: false}
"""
NETWORK = "network (every host and this machine's own services; the command can send all it can read)"
FILES = 'writes to files in this directory (not .git)'
READ_ONLY = "[This directory was read-only. Call again with access=['write']; the user is asked.]"
OFFLINE = "[There was no network. Call again with access=['network']; the user is asked.]"
AGAIN = 'the command may already have run and had effects'


@pytest.fixture
def desk(tmp_path, backend):
    return with_environment(Desk(tmp_path / 'work', SETTINGS, backend=backend))


def with_environment(desk):
    """The same desk, where `.venv` is an environment."""
    environment = desk.folder / '.venv'
    environment.mkdir()
    confinement = desk.workspace.shell._confinement
    shell = desk.workspace.shell
    shell._confinement = replace(
        confinement,
        approved=closed(confinement.approved, environment),
        unasked=closed(confinement.unasked, environment),
        environments=(str(environment),),
    )
    return desk


def closed(profile, environment):
    root = replace(profile.root_of(str(environment)), path=str(environment), access=Access.READ)
    return replace(profile, roots=(*profile.roots, root))


def given(desk, backend):
    """By command, what it had beyond the profile of an approved one."""
    environment = str(desk.folder / '.venv' / 'lib')
    return [
        (command[-1], profile.network, profile.access(environment) is Access.WRITE)
        for command, profile in zip(backend.commands, backend.profiles, strict=True)
    ]


def checked(desk, command, **arguments):
    return desk.workspace.shell.check_approval(
        ApprovalContext(tool_name=RUN_SHELL, args={'command': command, **arguments})
    )


def test_a_question_names_the_access_that_a_program_needs_and_approving_gives_just_that(desk, backend):
    desk.run('curl --version')
    desk.run('pip --version && echo pip install a')
    desk.run('true || pip install a')
    desk.run('printf a')

    assert given(desk, backend) == [
        ('curl --version', True, False),
        ('pip --version && echo pip install a', False, False),
        ('true || pip install a', True, True),
        ('printf a', False, False),
    ]
    [first, second, third, fourth] = desk.ui.requests
    # A rule or the default asks about it, and it is not known only to read, so that it can also write.
    assert first.presentation.metadata['extra_access'] == [NETWORK, FILES]
    assert third.presentation.metadata['extra_access'] == [NETWORK, FILES, 'writes to .venv']
    assert third.presentation.metadata['brief_access'] == ['network (every host)', FILES, 'writes to .venv']
    assert third.bound_to['extra_access'] == {
        'network': True,
        'files': [str(desk.folder)],
        'writes': [str(desk.folder / '.venv')],
    }
    for request in (second, fourth):
        assert 'extra_access' not in {**request.presentation.metadata, **request.bound_to, **request.payload}


def test_access_in_the_profile_is_not_asked_for(tmp_path, backend):
    rule = '        - {pattern: curl, approval: false, arguments: any}\n'
    desk = Desk(tmp_path / 'work', SETTINGS + rule + '      network: true\n', backend=backend)

    said, asked = desk.run('false', access=['network'])

    assert (said, asked) == ('[exit status 1]', False)
    assert checked(desk, 'curl a') is None


def test_the_digest_and_the_payload_differ_with_the_access(desk):
    controller = ApprovalController()
    plain, wide, wider = (checked(desk, 'printf a', access=access) for access in (None, ['network'], ['environment']))

    assert len({controller.digest_of(each) for each in (plain, wide, wider)}) == 3
    assert [each.payload.get('extra_access') for each in (plain, wide)] == [None, {'network': True}]
    assert wide.bound_to['extra_access'] != wider.bound_to['extra_access']


def test_a_result_names_the_access_that_the_output_suggests_and_the_profile_lacks(tmp_path, backend):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=backend)

    assert desk.run('false') == ('[exit status 1]', False)
    assert desk.run('echo "x: Read-only file system" && false')[0].endswith(f'[exit status 1]\n{READ_ONLY}')
    # Behind a pipe, the exit status says nothing.
    assert desk.run('echo "EROFS: read-only"')[0].endswith(READ_ONLY)
    assert desk.run('echo "Could not resolve host: a"') == (f'Could not resolve host: a\n{OFFLINE}', False)
    both, _ = desk.run('echo "EROFS, ENOTFOUND"')
    assert both.endswith(
        "[This directory was read-only. There was no network. Call again with access=['write', 'network']; "
        'the user is asked.]'
    )


def test_a_result_names_no_access_that_the_command_had_and_repeats_what_it_had(desk):
    had, _ = desk.run('echo "EROFS"', access=['write'])
    more, _ = desk.run('echo "EROFS"', access=['network'])
    inner, _ = desk.run('echo ".venv/a: EROFS"', access=['write'])

    assert had == 'EROFS'
    assert more.endswith(
        "[This directory was read-only. Call again with access=['write', 'network']; the user is asked.]"
    )
    assert inner.endswith(
        "[The environment was read-only. Call again with access=['write', 'environment']; the user is asked.]"
    )


def test_only_a_command_that_is_repeated_with_access_may_have_had_effects(desk):
    desk.run('false', access=['network'])
    assert AGAIN not in desk.ui.requests[-1].reason
    desk.run('false', access=['network'])
    assert desk.ui.requests[-1].reason == AGAIN
    assert desk.run('printf a && false', access=['network']) == ('a\n[exit status 1]', True)
    assert AGAIN not in desk.ui.requests[-1].reason
    assert desk.run('printf a && false', access=['network']) == ('a\n[exit status 1]', True)
    assert AGAIN in desk.ui.requests[-1].reason


def test_a_command_that_ran_in_an_earlier_process_may_have_had_effects(desk):
    desk.workspace.shell.begun.add('false')

    desk.run('false', access=['network'])

    assert desk.ui.requests[-1].reason == AGAIN


def test_what_a_rule_allows_asks_only_for_the_access_that_its_words_show(tmp_path, backend):
    desk = Desk(
        tmp_path / 'work', SETTINGS + '        - {pattern: curl, approval: false, arguments: any}\n', backend=backend
    )

    assert desk.run('curl --version') == desk.run('curl --version', access=['network'])

    request = desk.ui.requests[0]
    assert request.reason == 'it needs more access than a command has without approval'
    assert request.presentation.metadata['extra_access'] == [NETWORK]
    assert request.remember_options == ()


def test_access_to_files_is_shown_and_given_without_the_rest(desk, backend):
    (desk.folder / 'secret').mkdir()
    desk.run('echo a', access=['write'])
    desk.run('echo a')

    assert desk.ui.requests[-1].presentation.metadata['extra_access'] == [FILES]
    written, plain = backend.profiles
    assert [written.access(str(desk.folder / name)) for name in ('a', 'approvals.yaml', '.venv/a', 'secret')] == [
        Access.WRITE,
        Access.READ,
        Access.READ,
        Access.NONE,
    ]
    assert plain.access(str(desk.folder / 'a')) is Access.READ
    assert not (written.network or plain.network)


@pytest.mark.parametrize('access', ['network', ['network', 'disk'], [['network']], {'network': True}, 1, True])
def test_unknown_access_is_an_error_for_the_model(desk, backend, access):
    said, asked = desk.run('printf a', access=access)

    assert (
        said == "Blocked 'run_shell': `access` must be a list of these names: write, git, network, environment, host."
    )
    assert (asked, backend.commands) == (False, [])


@pytest.mark.parametrize('access', [None, []])
def test_empty_list_of_access_changes_nothing(desk, backend, access):
    assert desk.run('echo a', access=access) == ('a', False)
    assert given(desk, backend) == [('echo a', False, False)]


def test_a_blocked_command_stays_blocked(desk, backend):
    assert 'the rule `rm` blocks it' in desk.run('rm a', access=['network'])[0]
    assert backend.commands == []


def test_approval_of_one_access_covers_no_other(desk, backend):
    """Neither for the model, nor for code that runs the shell inside of an approved call."""

    async def function(command, access):
        for asked in (['network', 'environment'], None, ['network']):
            await desk.workspace.shell.run(command, asked)

    arguments = {'command': 'printf a', 'access': ['network']}
    asyncio.run(execute_tool(function, 'f', arguments, ApprovalController('approve_all'), default='required'))

    assert given(desk, backend) == [('printf a', False, False)] * 3


def test_a_mode_and_memory_give_what_is_bound(desk, backend):
    approved = ApprovalDecision(approved=True, remember='session')
    ui = ScriptedUI([approved, approved])
    remembering = ApprovalController(ui=ui, memory=ApprovalMemory())
    shell, facts = desk.workspace.shell, {'run_id': 'r'}

    async def main():
        await execute_tool(shell, RUN_SHELL, {'command': 'true || curl a'}, ApprovalController('approve_all'), facts)
        for command in ('printf a', 'printf a', 'pip uninstall --help', 'pip uninstall --help', 'printf a'):
            await execute_tool(shell, RUN_SHELL, {'command': command}, remembering, facts)

    asyncio.run(main())

    assert [(network, environment) for _, network, environment in given(desk, backend)] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
        (False, True),
        (False, False),
    ]


def test_an_approver_who_changes_the_command_gives_no_access_that_was_not_shown(desk, backend):
    change = ApprovalDecision(approved=True, override_args={'command': 'true || curl a'})
    controller = ApprovalController(ui=ScriptedUI([change]))

    with pytest.raises(Exception, match='other access or other files than the approver was shown'):
        asyncio.run(execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, controller))

    assert backend.commands == []


def test_approver_may_change_a_command_to_one_that_needs_the_same_access(desk, backend):
    change = ApprovalDecision(approved=True, override_args={'command': 'true || curl b'})
    controller = ApprovalController(ui=ScriptedUI([change]))

    asyncio.run(execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'true || curl a'}, controller))

    assert given(desk, backend) == [('true || curl b', True, False)]


def test_what_is_blocked_hidden_or_a_control_file_is_not_opened_by_any_access(desk, backend):
    for name in ('.git', 'secret'):
        (desk.folder / name).mkdir()
    desk.run('true || pip install a', access=['network', 'git', 'environment'])

    [profile] = backend.profiles
    closed_paths = [desk.folder / 'secret' / 'a', desk.folder / '.git' / 'config', desk.folder / 'approvals.yaml']
    assert [profile.access(str(path)) for path in closed_paths] == [Access.NONE, Access.READ, Access.READ]
    assert profile.network


def test_without_an_os_sandbox_extra_access_is_not_offered(tmp_path):
    desk = Desk(tmp_path / 'work', SETTINGS, backend=UnconfinedBackend())

    request = checked(desk, 'curl --version')

    assert not desk.workspace.shell.can_be_given_access
    assert 'extra_access' not in {**request.presentation.metadata, **request.bound_to}
    assert desk.run('false') == ('[exit status 1]', False)
    said, asked = desk.run('false', access=['network'])
    assert (said, asked) == (
        "Blocked 'run_shell': `access` is not available: no OS sandbox confines commands here.",
        False,
    )


@pytest.fixture
def address():
    with hello_server() as address:
        yield address


@pytest.fixture
def settings():
    return SETTINGS + '        - {pattern: curl, approval: false, arguments: any}\n'


@pytest.fixture
def confined(tmp_path, settings):
    if reason := skip_reason('root') and skip_reason('ordinary'):
        pytest.skip(reason)
    return with_environment(Desk(tmp_path / 'work', settings, backend=BubblewrapBackend()))


def test_confined_a_local_server_is_reached_only_after_the_access_was_approved(confined, address):
    said, asked = confined.run(f'curl -sS {address}')

    assert "There was no network. Call again with access=['network']" in said
    assert not asked
    assert confined.run(f'curl -sS {address}', access=['network']) == ('hello', True)
    assert confined.ui.requests[-1].presentation.metadata['extra_access'] == [NETWORK]


def test_confined_only_the_approved_access_writes_to_the_environment_and_nothing_hidden_is_read(confined):
    (confined.folder / 'secret').mkdir()
    (confined.folder / 'secret' / 'a').write_text('the secret')
    everything = ['network', 'git', 'environment']
    script = 'cat secret/a; echo a > .venv/made; cat .venv/made'

    before, _ = confined.run(script)
    after, _ = confined.run(script, access=everything)

    assert 'Read-only file system' in before
    assert '\na\n' in f'\n{after}\n'
    assert 'the secret' not in before + after


COMMIT = 'git add -A && git commit -q -m "By the agent" && git log -1 --format="%an: %s"'


@pytest.fixture
def repository(confined, monkeypatch, tmp_path):
    """The same desk in a new repository of a user who has a name."""
    if not os.path.isfile('/usr/bin/git'):
        pytest.skip('git is not installed below /usr')
    home = tmp_path / 'home'
    home.mkdir()
    (home / '.gitconfig').write_text('[user]\n\tname = Ann\n\temail = ann@example.org\n')
    monkeypatch.setenv('HOME', str(home))
    subprocess.run(['/usr/bin/git', 'init', '-q', '-b', 'main', str(confined.folder)], check=True)
    return confined


def log(repository):
    told = subprocess.run(
        ['/usr/bin/git', '-C', str(repository.folder), 'log', '--format=%an: %s'], capture_output=True, text=True
    )
    return told.stdout.splitlines()


def test_confined_an_approved_commit_is_made_and_an_unasked_one_is_not(repository):
    unasked = asyncio.run(repository.workspace.shell(COMMIT))
    assert 'Read-only file system' in unasked
    assert "[The repository was read-only. Call again with access=['git']; the user is asked.]" in unasked
    assert log(repository) == []

    assert repository.run(COMMIT) == ('Ann: By the agent', True)
    assert repository.ui.requests[-1].presentation.metadata['extra_access'] == [
        'writes to .git and files here; can change or delete history'
    ]
    assert log(repository) == ['Ann: By the agent']


def test_confined_a_commit_changes_neither_hooks_nor_configuration(repository):
    said, _ = repository.run(f'echo evil > .git/hooks/pre-push; git config core.pager evil; {COMMIT}')

    assert said.splitlines()[0] == 'Ann: By the agent'
    assert 'could not write config file' in said
    assert not (repository.folder / '.git' / 'hooks' / 'pre-push').exists()
    assert 'evil' not in (repository.folder / '.git' / 'config').read_text()


def test_confined_without_git_access_a_command_writes_no_repository(repository):
    said, _ = repository.run('echo evil > .git/config', access=['network', 'environment'])

    assert 'Read-only file system' in said
    assert '[The repository was read-only. Call again with access=' in said


def test_confined_files_are_made_and_removed_at_the_top_only_after_approval(confined):
    script = 'unlink old && touch new && mkdir -p deep/er && echo a > text && ls'
    (confined.folder / 'old').touch()

    approved, was_asked = confined.run(script)

    assert (approved, was_asked) == ('approvals.yaml\ndeep\nnew\ntext', True)
    assert confined.ui.requests[-1].presentation.metadata['extra_access'] == [FILES]
    assert sorted(os.listdir(confined.folder)) == ['.venv', 'approvals.yaml', 'deep', 'new', 'text']


def test_confined_no_control_file_appears_where_names_may_be_made(confined):
    evil = 'mkdir .git && echo "[core]" > .git/config; echo x >> approvals.yaml; mv approvals.yaml other; touch made'
    before = (confined.folder / 'approvals.yaml').read_text()

    confined.run(evil, access=['network', 'git', 'environment'])

    assert sorted(os.listdir(confined.folder)) == ['.venv', 'approvals.yaml', 'made']
    assert (confined.folder / 'approvals.yaml').read_text() == before


CLOSED = """\
    sandbox:
      paths: {work: {root: ., mode: rw}, closed: {root: closed, mode: rw, read_approval: true}}
    shell: {default: {approval: false}}
"""


@pytest.mark.parametrize('settings', [CLOSED])
def test_confined_history_of_files_that_need_approval_is_hidden_until_the_question_shows_it(repository):
    commit(repository, 'closed/x', 'the secret')
    git = '/usr/bin/git'

    shown, was_asked = repository.run('git show HEAD:closed/x')
    hidden, was_asked_otherwise = repository.run(f'find .git/objects -type f -exec cat {{}} +; {git} log -p')
    logged, _ = repository.run('git log --format=%s')

    assert (shown, was_asked) == ('the secret', True)
    assert repository.ui.requests[0].presentation.metadata['extra_access'] == ['reads files in closed']
    assert ('the secret' in hidden, was_asked_otherwise) == (False, False)
    assert '[The history of the repository is hidden from this command, because' in hidden
    assert logged == 'one'
    assert len(repository.ui.requests) == 2


@pytest.mark.parametrize('settings', [CLOSED])
def test_confined_history_without_such_files_is_not_hidden(repository):
    commit(repository, 'closed2', 'no secret')
    (repository.folder / 'closed').mkdir()

    assert repository.run('git show HEAD:closed2') == ('no secret', False)


def commit(repository, name, text):
    path = repository.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    for arguments in (['add', '-A'], ['commit', '-q', '-m', 'one']):
        subprocess.run(['/usr/bin/git', '-C', str(repository.folder), *arguments], check=True)
    repository.open(repository.loaded.settings, backend=BubblewrapBackend())


def test_where_a_program_is_not_found_the_result_says_which_there_are_and_names_no_access(desk):
    said, _ = desk.run('exit 127')

    assert said == (
        '[exit status 127]\n'
        '[A program was not found. Commands can use programs of the system, of the active environment and of the '
        'toolchains that `tool-approval doctor` lists. Call a program of the project by path, such as '
        '`.venv/bin/pytest`. For other programs, the user can activate an environment and restart the agent, or add '
        'a folder to `sandbox.toolchains`.]'
    )


def test_an_environment_that_is_not_active_is_named_by_its_layout_where_a_program_is_not_found(desk):
    for name in ('.venv', 'venv'):
        (desk.folder / name / 'bin').mkdir(parents=True)
        (desk.folder / name / 'lib' / 'python3.11').mkdir(parents=True)
        (desk.folder / name / 'pyvenv.cfg').touch()
    (desk.folder / '.venv' / 'bin' / 'activate').touch()
    (desk.folder / 'env').symlink_to('.venv')
    confinement = desk.workspace.shell._confinement

    none = replace(confinement.approved, variables=())
    desk.workspace.shell._confinement = replace(confinement, approved=none)
    said, _ = desk.run('exit 127')
    active = replace(confinement.approved, variables=(('VIRTUAL_ENV', '/opt/env'),))
    desk.workspace.shell._confinement = replace(confinement, approved=active)
    said_if_active, _ = desk.run('exit 127')

    [note] = said.splitlines()[2:]
    assert note == (
        '[This directory has .venv, which looks like a virtual environment, but is not active, and was not checked. '
        'Call its programs by path, such as `.venv/bin/python`.]'
    )
    assert len(said_if_active.splitlines()) == 2


@pytest.mark.parametrize(
    ('make', 'problem'),
    [
        (lambda folder: None, 'there is no repository in this directory or above it'),
        (lambda folder: (folder / '.git').write_text('gitdir: ../elsewhere'), 'a symbolic link or broken'),
        (lambda folder: (folder.parent / '.git' / 'objects').mkdir(parents=True), 'start in that directory'),
    ],
)
def test_where_git_cannot_be_given_the_result_says_why(desk, make, problem):
    make(desk.folder)

    said, _ = desk.run('false && git commit')

    assert '[The command had no access to .git, and this access cannot be granted: ' in said
    assert problem in said


def test_confined_where_a_root_leads_elsewhere_nothing_runs(confined, tmp_path):
    (confined.folder / 'secret').symlink_to(tmp_path)

    assert 'cannot confine it' in confined.run('touch a')[0]


def test_audit_log_and_memory_record_the_access(desk, tmp_path):
    sink, store = ListSink(), FileApprovalStore(desk.folder, tmp_path / 'approvals.json')
    ui = ScriptedUI([ApprovalDecision(approved=True, remember='always')])
    controller = ApprovalController(ui=ui, audit=sink, memory=ApprovalMemory(store))
    arguments = {'command': 'curl --version'}

    async def main():
        for _ in range(2):
            await execute_tool(desk.workspace.shell, RUN_SHELL, arguments, controller)
        await execute_tool(desk.workspace.shell, RUN_SHELL, {'command': 'printf a'}, controller)

    # The third is another call: nothing answers it.
    with pytest.raises(ApprovalDenied):
        asyncio.run(main())

    first, second, third = sink.decisions()
    given = {'network': True, 'files': [str(desk.folder)]}
    assert [entry['payload'].get('extra_access') for entry in (first, second, third)] == [given, given, None]
    assert first['digest'] == second['digest'] != third['digest']


def test_confined_an_environment_that_was_found_is_written_by_an_approved_command_alone(confined):
    subprocess.run([PYTHON, '-m', 'venv', '--without-pip', str(confined.folder / '.venv')], check=True)
    confined.open(confined.loaded.settings, backend=BubblewrapBackend())

    unasked = asyncio.run(confined.workspace.shell('touch .venv/lib/made'))
    approved = confined.run('touch .venv/lib/made && ls .venv/lib', access=['environment'])

    assert 'Read-only file system' in unasked
    assert "[The environment was read-only. Call again with access=['environment']; the user is asked.]" in unasked
    assert ('made' in approved[0], approved[1]) == (True, True)
    assert confined.ui.requests[-1].presentation.metadata['extra_access'] == [FILES, 'writes to .venv']

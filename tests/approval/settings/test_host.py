"""A listed command runs outside of the sandbox, as the user, once a person has seen what runs; nothing else runs."""

import asyncio
import os
import textwrap
import threading

import pytest
from tool_approval.core.tool_checks import approving
from tool_approval.os_sandbox import BubblewrapBackend, host_program
from tool_approval.os_sandbox.host_git import Remote
from tool_approval.settings import RUN_SHELL, load_settings, open_workspace, parse_settings
from tool_approval.settings.host import OUTSIDE
from tool_approval.testing import ScriptedUI
from tool_approval.tools.file_sandbox import FileTools

from tests.tables import table
from tool_approval import (
    ApprovalConfigError,
    ApprovalController,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalMemory,
    ApprovalPolicy,
    ApprovalRefused,
    execute_tool,
)

from .outside import GIT, SETTINGS, Place, serving

pytest.importorskip('yaml')
pytest.importorskip('tree_sitter_bash')


@pytest.fixture
def place(confined_folder, monkeypatch):
    if not os.path.isfile(GIT):
        pytest.skip('git is not installed below /usr')
    return Place(confined_folder, monkeypatch)


def test_a_push_to_a_local_repository_shows_what_runs_and_works(place):
    place.script(place.store / 'hooks/post-receive', 'true')

    said = place.run('git push origin main', 'host')

    assert 'main -> main' in said
    assert place.is_pushed
    assert place.questions == [
        [
            OUTSIDE,
            f'program: {GIT}, in {place.work}',
            f'remote origin: {place.store}',
            f'git runs the hooks of {place.store}: post-receive',
        ]
    ]
    assert place.ui.requests[0].reason == 'it runs outside of the sandbox'
    assert place.ui.requests[0].answers == ('approve', 'deny')


@pytest.mark.parametrize('command', ['git push', 'git push --tags -q', 'git fetch', 'git ls-remote --heads origin'])
def test_git_that_cannot_reach_its_remote_in_the_sandbox_asks_to_run_outside_at_once(place, command):
    said = place.run(command)

    assert [lines[0] for lines in place.questions] == [OUTSIDE]
    assert 'refused' not in said
    assert 'exit status' not in said


def test_a_denied_call_does_not_run(place):
    place.answer = lambda: False

    assert place.run('git push', 'host').startswith('refused: ')
    assert not place.is_pushed


@pytest.mark.parametrize('command', ['git push', 'git fetch', 'git pull', 'git log -1 && git push', 'git push; true'])
def test_where_git_is_not_listed_nobody_is_asked_in_vain(place, command):
    place.open(SETTINGS.replace('host: [git push, git fetch, git ls-remote, tool, gh]', 'host: [tool]'))

    said = place.run(command)

    assert 'keys or logins of the user, which no command in the sandbox has. Tell the user to run `git ' in said
    assert ', or to add `host: [git ' in said
    assert place.questions == []


@pytest.mark.parametrize(
    ('command', 'advice'),
    [
        ('git pull', "Call `git fetch` alone, with access=['host'], then `git merge` with access=['git']"),
        ('git log -1 && git push', "Call `git push` alone, with access=['host']; the user is asked."),
    ],
)
def test_a_listed_command_inside_of_a_line_is_to_be_called_alone(place, command, advice):
    assert advice in place.run(command)
    assert place.questions == []


ADDRESSES = [
    ('git push git@example.org:a.git main', 'is not the name of a remote here'),
    ('git push https://example.org/a.git main', 'is not the name of a remote here'),
    ('git fetch ssh://example.org/a.git', 'is not the name of a remote here'),
    ('git clone git@example.org:a.git', 'Tell the user to clone it.'),
    ('git clone --depth 1 https://ann:key@example.org/a.git b', 'Tell the user to clone it.'),
]


@table('command, said', ADDRESSES)
def test_an_address_that_needs_the_user_is_refused_before_anybody_is_asked(place, command, said):
    assert said in place.run(command)
    assert place.questions == []


def test_a_rule_that_blocks_comes_first(place):
    place.open(f'{SETTINGS}      rules:\n        - {{pattern: git push, allowed: false}}\n')

    assert all('the rule `git push` blocks it' in place.run('git push', *access) for access in ((), ('host',)))


def test_a_remote_in_the_workspace_needs_no_host(place):
    place.host('git init -q --bare inner.git; git remote add inner "$PWD/inner.git"')

    assert 'exit status' not in place.run('git push -q inner main', 'git')
    assert 'where commands can write' in place.run('git push inner main', 'host')
    assert all(OUTSIDE not in lines for lines in place.questions)


def test_git_whose_words_are_unknown_is_left_to_the_sandbox(place):
    assert 'keys or logins of the user' not in place.run('git $NO_SUCH_VARIABLE push')


@pytest.mark.parametrize('access', [('host',), ()])
def test_git_that_is_told_to_work_in_the_working_directory_runs_there(place, access):
    said = place.run(f'git -C {place.work} -C . push origin main', *access)

    assert 'exit status' not in said
    assert place.is_pushed
    assert [lines[0] for lines in place.questions] == [OUTSIDE]


LINES = [
    'git push origin main && true', 'git push origin main; true', 'git push origin main &', '! git push origin main',
    'git push origin "$(id)"', 'git push origin $x', 'git push origin m*', 'git push origin main > f', '(git push)',
    'git push origin main | cat', 'A=1 git push origin main', 'git push origin main < f',
    'for i in 1; do git push; done', 'git push <<< x', '/usr/bin/git push', './tool', 'git push origin main # x',
    '{ git push; }', 'exec git push', 'command git push', 'env git push', 'tool "a\nb" \nid', 'git push origin ~/x',
    'git push origin {a,b}',
]  # fmt: skip


@table('line', LINES)
def test_only_one_simple_command_of_fixed_words_runs_outside(place, line):
    said = place.run(line, 'host')

    assert said.startswith('refused: ')
    assert place.questions == []


WORDS = [
    'git push --receive-pack=x origin', 'git push --exec=x origin', 'git push --receive-pack x origin',
    'git fetch --upload-pack=x', 'git fetch --upload-pack x origin', 'git push --rec=x origin',
    'git fetch --up=x origin', 'git push --signed origin', 'git push --repo=https://example.org origin',
    'git push -o x origin', 'git push --push-option=x origin', 'git push --no-verify origin',
    'git push --recurse-submodules=on-demand origin', 'git fetch --recurse-submodules', 'git fetch --all',
    'git fetch --multiple origin', 'git fetch --stdin', 'git fetch --filter=x origin', 'git push -fu origin',
    'git fetch --server-option=x origin', 'git fetch --negotiate-only', 'git push --mirror origin',
    'git -c core.sshCommand=x push origin main', 'git --config-env=core.sshCommand=HOME push origin',
    'git -C .. push', 'git --exec-path=. push', 'git --git-dir=x push', 'git commit -am x',
    'git clone https://example.org/x.git', 'git push ext::sh%20-c%20id main', 'git push x::y main',
    'git push https://example.org/a.git main', 'git push ../store.git', 'git push -- origin',
    'git push git@example.org:a.git', 'git push "origin main"', 'git push origin "--receive-pack=x"',
    'git push origin "main;id"', 'git push nowhere', 'git push .', 'git ls-remote --upload-pack=x origin',
    'git pushx', 'git fetch origin main --upload-pack=x', 'git', 'docker ps', 'toolx', 'tools', 'gh pr list',
]  # fmt: skip


@table('words', WORDS)
def test_words_that_no_question_could_show_are_refused_before_anybody_is_asked(place, words):
    said = place.run(words, 'host')

    assert said.startswith('refused: ')
    assert place.questions == []


@pytest.mark.parametrize('access', [('host', 'git'), ('network', 'host')])
def test_host_goes_with_no_other_access(place, access):
    assert '`host` goes with no other access' in place.run('git push', *access)


CONFIG = [
    'core.sshCommand', 'core.fsmonitor', 'core.gitProxy', 'core.askPass', 'core.pager', 'core.editor',
    'core.worktree', 'core.alternateRefsCommand', 'core.attributesFile', 'credential.helper',
    'credential.https://x.helper', 'gpg.program', 'gpg.ssh.program', 'gpg.ssh.defaultKeyCommand', 'push.gpgSign',
    'remote.origin.uploadpack', 'remote.origin.receivepack', 'remote.origin.vcs', 'remote.origin.proxy',
    'remote.origin.mirror', 'remote.origin.push', 'remote.origin.promisor', 'url./tmp/.insteadOf',
    'url./tmp/.pushInsteadOf', 'alias.push', 'include.path', 'includeIf.gitdir:/.path', 'filter.x.clean',
    'filter.x.process', 'diff.external', 'http.proxy', 'http.sslVerify', 'http.extraHeader', 'http.cookieFile',
    'submodule.x.update', 'protocol.ext.allow', 'protocol.allow', 'ssh.variant', 'uploadpack.packObjectsHook',
    'fetch.output', 'extensions.partialClone', 'pager.push', 'trace2.eventTarget', 'transfer.credentialsInUrl',
    'lfs.url', 'lfs.customtransfer.x.path', 'fsck.skipList', 'hook.x.command', 'remotes.origin',
]  # fmt: skip


@table('key', CONFIG)
def test_a_key_of_the_repository_that_is_not_known_to_be_harmless_is_refused_and_runs_nothing(place, key):
    (place.work / '.git/config').write_bytes(place.config)
    script = place.script(place.work / 'evil', place.attack)
    place.host(f"git config '{key}' {script}")

    said = [place.run(command, 'host') for command in ('git push origin main', 'git fetch origin', 'tool')]

    assert all(each.startswith('refused: ') for each in said)
    assert place.questions == []
    assert not place.pwned.exists()


def test_other_places_of_a_repository_that_name_programs_or_addresses_are_refused_or_run_nothing(place):
    script = place.script(place.work / 'evil', place.attack)
    evil = f'[core]\n\tsshCommand = {script}\n\tfsmonitor = {script}\n'
    plants = {
        'old remotes': f'mkdir -p .git/remotes; echo "URL: {place.path}/x" > .git/remotes/origin',
        'old branches': f'mkdir -p .git/branches; echo "{place.path}/x" > .git/branches/origin',
        'work tree': f'git config extensions.worktreeConfig true; printf "{evil}" > .git/config.worktree',
        'refspec': 'git config remote.origin.fetch "+refs/heads/*:refs/heads/*"',
        'helper': "git config remote.origin.url 'ext::sh -c id'",
        'dash': 'git config remote.origin.url -- "-oProxyCommand=id:x"',
        'git protocol': 'git config remote.origin.url git://example.org/x',
        'two': 'git config --add remote.origin.pushurl "ssh://-oProxyCommand=id/x"',
    }
    for what, plant in plants.items():
        place.host(f'rm -rf ../kept; cp -r ../work ../kept; {plant}')

        said = place.run('git push origin main', 'host')

        assert said.startswith('refused: '), (what, said)
        assert not place.pwned.exists(), what
        place.host('cd ..; rm -rf work/* work/.git; cp -r kept/. work')
    assert place.questions == []
    assert 'main -> main' in place.run('git push origin main', 'host')


@pytest.mark.parametrize('inner', ['sub', '.'])
def test_a_folder_that_looks_like_a_bare_repository_is_no_repository(place, inner):
    script = place.script(place.path / 'evil', place.attack)
    sub = place.work / inner
    sub.mkdir(exist_ok=True)
    place.host('git init -q --bare ../bare; git -C ../bare remote add origin "$PWD/../store.git"')
    place.host(f'git -C ../bare config core.fsmonitor {script}; cp -rn ../bare/. {inner}')
    place.work = sub
    place.open(SETTINGS.replace('root: .,', f'root: {place.path}/work,').replace('../', f'{place.path}/'))

    said = place.run('git push origin main', 'host')

    assert said.startswith('refused: ') == (inner == 'sub')
    assert not place.pwned.exists()


def test_what_only_the_work_tree_and_the_hooks_have_runs_nothing_or_is_shown(place):
    place.host(
        'echo "* filter=x" > .gitattributes;'
        'printf "[submodule \\"s\\"]\\n\\tpath=s\\n\\turl=x\\n\\tupdate=!id\\n" > .gitmodules'
    )
    for name in ('reference-transaction', 'post-update', 'pre-auto-gc', 'push-to-checkout', 'fsmonitor-watchman'):
        place.script(place.work / '.git/hooks' / name, place.attack)

    assert 'main -> main' in place.run('git push origin main', 'host')
    assert 'exit status' not in place.run('git fetch', 'host')
    assert not place.pwned.exists()


def test_the_hook_that_is_shown_runs_with_exactly_its_content(place):
    hook = place.script(place.work / '.git/hooks/pre-push', 'echo "hook of $1 in $PWD" >&2')

    said = place.run('git push origin main', 'host')

    assert f'hook of origin in {place.work}' in said
    assert place.is_pushed
    assert [line for line in place.questions[0] if 'hook' in line and str(hook) in line]


def test_a_hook_that_refuses_stops_the_push(place):
    place.script(place.work / '.git/hooks/pre-push', 'exit 1')

    assert '[exit status 1]' in place.run('git push origin main', 'host')
    assert not place.is_pushed


@pytest.mark.parametrize('how', ['a link', 'of the user', 'of the repository'])
def test_a_hook_that_commands_can_write_is_refused(place, how):
    script = place.script(place.work / 'pre-push', place.attack)
    if how == 'a link':
        (place.work / '.git/hooks/pre-push').symlink_to(script)
    else:
        place.host(f'git config {"--global" if how == "of the user" else ""} core.hooksPath {place.work}')

    assert 'exit status' not in place.run('git fetch origin', 'host')
    assert 'is where commands can write, or cannot be read' in place.run('git push origin main', 'host')
    assert not place.pwned.exists()


def test_a_hook_of_the_user_elsewhere_runs(place, remote):
    place.script(place.home / 'pre-push', 'echo users >&2')
    address = remote.replace('//', '//ann:s3cret@')
    place.host(f'git config --global core.hooksPath {place.home}; git config remote.origin.url {address}')

    assert 'users' in place.run('git push origin main', 'host')


@pytest.mark.parametrize(
    'how',
    [
        'git config --global core.hooksPath "$HOME/later"',
        'git -C ../store.git config core.hooksPath ../work',
        'git -C ../store.git config include.path ../work/config',
        'git config remote.origin.url "$(dirname "$PWD")/store"',
        'mkdir ../far; mv ../store.git ../far/x; mkdir ../store.git; echo gitdir: ../far/x > ../store.git/.git',
        'mv ../store.git ../away',
    ],
)
def test_a_repository_of_this_machine_whose_hooks_may_be_elsewhere_is_refused(place, how):
    place.host(how)

    said = place.run('git push origin main', 'host')

    assert 'It cannot be shown which hooks git would run in' in said
    assert place.questions == []


def test_a_program_that_is_named_without_its_folder_is_looked_up(place, remote):
    script = place.script(place.work / 'evil', place.attack)
    for name, key, value in (
        ('git-credential-my', 'credential.helper', 'my'),
        ('my', 'credential.helper', '!my'),
        ('myssh', 'core.sshCommand', 'myssh -v'),
    ):
        (place.bin / name).symlink_to(script)
        url = 'git@a.example:x' if key == 'core.sshCommand' else remote
        place.host(f"git config --global {key} '{value}'; git config remote.origin.url {url}")

        assert 'is where commands can write' in place.run('git push origin main', 'host'), value
    assert not place.pwned.exists()


@pytest.mark.parametrize('where', ['.config/tool/a/b/c', '.tool/x/y', 'xdg/tool/conf'])
def test_a_link_anywhere_in_the_configuration_of_a_program_is_found(place, monkeypatch, where):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(place.home / 'xdg'))
    link = place.home / where
    link.parent.mkdir(parents=True)
    link.symlink_to(place.work)
    place.script(place.bin / 'tool', place.attack)

    assert 'is where commands can write' in place.run('tool', 'host')
    assert not place.pwned.exists()


@pytest.mark.parametrize('line', ['Include {work}/ssh', 'include = "{work}/*.conf"', 'INCLUDE config.d/* {work}/x'])
def test_what_the_configuration_of_ssh_includes_is_looked_at(place, line):
    (place.home / '.ssh').mkdir()
    (place.home / '.ssh/config').write_text(f'Host a\n  {line.format(work=place.work)}\n')
    place.host('git config remote.origin.url git@a.example:x')

    assert 'is where commands can write' in place.run('git push origin main', 'host')


def test_a_configuration_of_very_many_files_is_refused(place, monkeypatch):
    monkeypatch.setattr(host_program, '_MOST_FILES', 2)
    folder = place.home / '.tool'
    folder.mkdir()
    for at in range(3):
        (folder / str(at)).touch()
    place.script(place.bin / 'tool', 'echo ran')

    assert 'too many files' in place.run('tool', 'host')


def test_an_interpreter_that_commands_can_write_runs_nothing(place):
    place.script(place.work / 'interpreter', place.attack)
    program = place.script(place.bin / 'tool', '')
    program.write_text(f'#!{place.work}/interpreter\n')

    assert 'leads to a place to which commands can write' in place.run('tool', 'host')
    assert not place.pwned.exists()


SWAPS = {
    'the program': lambda place: place.script(place.bin / 'git', place.attack),
    'the hook': lambda place: place.script(place.work / '.git/hooks/pre-push', place.attack),
    'the configuration': lambda place: place.host('git config core.fsmonitor evil'),
    'the address': lambda place: place.host('git config remote.origin.url "$(realpath ..)/other.git"'),
    'the branch': lambda place: place.host('git config branch.main.remote other; git config remote.other.url /x'),
    'the user': lambda place: place.host('git config --global credential.helper evil'),
}


@pytest.mark.parametrize('what', SWAPS)
def test_what_is_swapped_between_the_question_and_the_run_stops_the_run(place, what):
    def answer():
        SWAPS[what](place)
        return True

    place.answer = answer

    said = place.run('git push', 'host')

    assert said.startswith('refused: ')
    assert len(place.questions) == 1
    assert not place.pwned.exists()
    assert not place.is_pushed


def test_a_link_that_is_swapped_between_the_question_and_the_run_stops_the_run(place):
    good, bad = (place.script(place.path / each, text) for each, text in (('good', 'true'), ('bad', place.attack)))
    (place.bin / 'gh').symlink_to(good)

    def answer():
        (place.bin / 'gh').unlink()
        (place.bin / 'gh').symlink_to(bad)
        return True

    place.answer = answer

    assert place.run('gh pr list', 'host').startswith('refused: ')
    assert f'program: {good}, in {place.work}' in place.questions[0]
    assert not place.pwned.exists()


def test_a_folder_of_path_that_commands_can_write_is_not_searched(place):
    (place.path / 'reads/tool').symlink_to(place.work / 'tool')
    (place.path / 'far').symlink_to(place.work / 'near')
    (place.work / 'near').symlink_to(place.path / 'suffix')
    for each in ('work', 'suffix'):
        for name in ('tool', 'git', 'ssh', 'sh'):
            place.script(place.path / each / name, place.attack)
    here, link = place.work, place.path / 'link'
    link.symlink_to(here)
    folders = (here, place.path / 'suffix', link, place.path / 'far', '', '.', 'near', f'{place.bin}/../work')
    place.set_path(*folders, place.bin, '/usr/bin', '/bin')
    place.open(SETTINGS)

    assert 'tool ran: x' in place.run('tool x', 'host')
    assert 'main -> main' in place.run('git push origin main', 'host')
    assert not place.pwned.exists()

    place.set_path(place.path / 'reads', place.bin, '/usr/bin')
    place.open(SETTINGS)

    assert 'leads to a place to which commands can write' in place.run('tool x', 'host')


def test_the_environment_has_no_variable_that_decides_what_runs(place, monkeypatch):
    bad = {
        'BASH_ENV': f'{place.work}/evil', 'ENV': f'{place.work}/evil', 'LD_PRELOAD': f'{place.work}/evil.so',
        'PYTHONPATH': 'x', 'GIT_DIR': f'{place.work}/other', 'GIT_CONFIG_GLOBAL': f'{place.work}/evil',
        'GIT_EXEC_PATH': f'{place.work}', 'GIT_CONFIG_PARAMETERS': "'core.fsmonitor=evil'",
        'GIT_PROXY_COMMAND': 'evil', 'GIT_EXTERNAL_DIFF': 'evil', 'DOCKER_CONFIG': str(place.work),
        'GH_CONFIG_DIR': 'conf', 'XDG_DATA_DIRS': f'/usr/share:{place.work}', 'NODE_OPTIONS': '--require x',
        'PERL5LIB': 'x', 'RUBYOPT': '-rx', 'PERL5OPT': '-Mx', 'npm_config_script_shell': 'evil', 'EDITOR': 'evil',
        'GH_BROWSER': 'evil', 'XDG_CONFIG_HOME': f'{place.work}/.config',
    }  # fmt: skip
    good = {
        'GH_TOKEN': 'secret',
        'GITHUB_TOKEN': 'secret',
        'NPM_TOKEN': 'secret',
        'SSH_AUTH_SOCK': '/run/agent',
        'https_proxy': 'http://proxy:1',
        'LANG': 'C.UTF-8',
    }
    (place.work / 'conf').mkdir()
    for name, value in {**bad, **good}.items():
        monkeypatch.setenv(name, value)
    place.script(place.bin / 'tool', 'env')
    place.open(SETTINGS)

    said = place.run('tool', 'host').splitlines()

    assert [f'{name}={value}' for name, value in good.items() if f'{name}={value}' not in said] == []
    assert [name for name, value in bad.items() if f'{name}={value}' in said] == []
    assert f'PATH={place.bin}:/usr/bin' in said or f'PATH={place.bin}:/usr/bin:/bin' in said


def test_a_home_to_which_commands_can_write_lets_nothing_run_outside(place, monkeypatch):
    monkeypatch.setenv('HOME', str(place.work))
    place.open(SETTINGS)

    assert 'Commands can write to the home directory' in place.run('tool', 'host')


def test_no_mode_no_memory_and_no_rule_approves(place):
    everything = ApprovalController('approve_all', policy=place.workspace.policy)
    free = ApprovalController(policy=ApprovalPolicy({'run_shell': {'approval': 'none'}}))

    assert 'the mode `approve_all` blocks it' in place.run('git push', 'host', controller=everything)
    assert 'only if a person has approved' in place.run('git push', 'host', controller=free)
    assert not place.is_pushed


@pytest.mark.parametrize('remember', ['session', 'always'])
def test_an_answer_that_is_to_be_remembered_is_refused(place, remember):
    memory = ApprovalMemory()
    ui = ScriptedUI([ApprovalDecision(approved=True, remember=remember)])
    controller = ApprovalController(policy=place.workspace.policy, ui=ui, memory=memory)

    said = place.run('tool', 'host', controller=controller)

    assert 'does not allow the answer `remember`' in said
    assert memory.list_approvals() == []


def test_an_edit_is_refused(place):
    changed = ApprovalDecision(approved=True, override_args={'command': 'tool other', 'access': ['host']})
    controller = ApprovalController(policy=place.workspace.policy, ui=ScriptedUI([changed]))

    assert 'does not allow the answer `edit`' in place.run('tool', 'host', controller=controller)


def test_an_approval_of_the_base_profile_gives_no_host(place):
    async def forged():
        shell = place.workspace.shell
        return await shell(command='git push', access=['host'])

    with pytest.raises(ApprovalRefused, match='only if a person has approved'):
        asyncio.run(forged())


def test_an_approval_of_something_else_runs_nothing(place):
    async def forged():
        args = {'command': 'git push', 'access': ['host']}
        with approving(args, {'extra_access': {'host': {'argv': [GIT, 'push']}}}):
            return await place.workspace.shell(**args)

    with pytest.raises(ApprovalRefused, match='The call changed'):
        asyncio.run(forged())
    assert not place.is_pushed


def test_another_call_that_could_change_something_since_the_question_stops_the_run(place):
    tools = FileTools(place.workspace.files)

    async def both(other):
        asked = asyncio.Event()

        class Waiting:
            one_at_a_time = False

            async def choose(self, request, *, mode):
                asked.set()
                await asyncio.to_thread(answered.wait)
                return ApprovalDecision(approved=True)

        answered = threading.Event()
        controller = ApprovalController(policy=place.workspace.policy, ui=Waiting())
        call = asyncio.create_task(place.call('git push', 'host', controller=controller))
        await asked.wait()
        await other()
        answered.set()
        return await call

    async def write():
        await execute_tool(tools['write_file'], 'write_file', {'path': 'n', 'content': 'x'}, place.controller)

    said = [
        asyncio.run(both(lambda: place.call('echo 3 > f'))),
        asyncio.run(both(write)),
        asyncio.run(both(lambda: asyncio.sleep(0))),
    ]

    assert ['The call changed after it was approved' in each for each in said] == [True, True, False]
    assert 'main -> main' in said[2]


def test_no_other_call_of_the_conversation_runs_beside_it(place):
    begun, go_on = place.path / 'begun', place.path / 'go'
    place.script(place.bin / 'tool', f'touch {begun}; while ! test -e {go_on}; do sleep 0.01; done; echo done')
    tools = FileTools(place.workspace.files)

    async def all_three():
        alone = asyncio.create_task(place.call('tool', 'host'))
        while not begun.exists():
            await asyncio.sleep(0.01)
        command = asyncio.create_task(place.call('echo inside'))
        with pytest.raises(PermissionError, match='runs outside of the sandbox now'):
            await execute_tool(tools['read_file'], 'read_file', {'path': 'f'}, ApprovalController('approve_all'))
        await asyncio.sleep(0.1)
        was_waiting = not command.done()
        go_on.touch()
        return was_waiting, await alone, await command

    assert asyncio.run(all_three()) == (True, 'done', 'inside')


def test_settings_that_are_not_trusted_list_nothing(place):
    (place.work / 'approvals.yaml').write_text(textwrap.dedent(SETTINGS))
    workspace = open_workspace(load_settings(directory=place.work), backend=BubblewrapBackend())

    assert workspace.settings.shell is not None
    assert workspace.settings.shell.host == ()


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('sandbox: {require_os_sandbox: true}\nshell: {host: [git push]}', 'requires_os_sandbox|require_os_sandbox'),
        ('shell: {host: [git]}', 'of git, only `git push`'),
        ('shell: {host: [git commit]}', 'of git, only `git push`'),
        ('shell: {host: [git push -f]}', 'must be the plain first words'),
        ('shell: {host: [git push origin]}', 'of git, only `git push`'),
        ('shell: {host: [/usr/bin/git push]}', 'must be the plain first words'),
        ('shell: {host: [" gh"]}', 'must be the plain first words'),
        ('shell: {host: ["gh *"]}', 'must be the plain first words'),
        ('shell: {host: [""]}', 'must be the plain first words'),
    ],
)
def test_what_cannot_be_listed_is_an_error(text, problem):
    with pytest.raises(ApprovalConfigError, match=problem):
        parse_settings(text)


def test_a_push_over_ssh_names_the_command_that_connects(place, monkeypatch):
    fake = place.script(place.bin / 'fake-ssh', 'shift; eval "$*"')
    place.host(f'git config remote.origin.url "ann@example.org:{place.store}"')
    place.open(SETTINGS)
    without = place.run('git fetch', 'network')
    place.host(f'git config --global core.sshCommand {fake}')

    pushed = place.run('git push origin main')
    monkeypatch.setenv('GIT_SSH_COMMAND', f'{place.work}/evil-ssh')
    place.open(SETTINGS)
    refused = place.run('git fetch origin', 'host')

    assert 'exit status 128' in without
    assert 'main -> main' in pushed
    assert 'connects with: /usr/bin/ssh' in place.questions[0]
    assert f'connects with: {fake}' in place.questions[1]
    assert f'remote origin: ann@example.org:{place.store}' in place.questions[1]
    assert 'is where commands can write' in refused


@pytest.mark.parametrize(
    ('name', 'command'),
    [('.ssh/config', 'git fetch origin'), ('.config/tool/x', 'tool'), ('.tool', 'tool'), ('.config/git', 'git fetch')],
)
def test_a_configuration_in_the_home_that_leads_to_the_workspace_is_refused(place, name, command):
    place.host('git config remote.origin.url "ann@example.org:a.git"')
    (place.home / name).parent.mkdir(parents=True, exist_ok=True)
    (place.home / name).symlink_to(place.work / 'dotfile')

    assert 'is where commands can write, so' in place.run(command, 'host')
    assert place.questions == []


@pytest.mark.parametrize('how', ['link', 'include', 'conditional include'])
def test_a_configuration_of_git_in_the_home_that_leads_to_the_workspace_counts_as_that_of_the_repository(place, how):
    (place.work / 'gitconfig').write_text(f'[core]\n\tsshCommand = {place.script(place.path / "evil", place.attack)}\n')
    mine = place.home / '.gitconfig'
    if how == 'link':
        mine.unlink()
        mine.symlink_to(place.work / 'gitconfig')
    else:
        section = 'include' if how == 'include' else f'includeIf "gitdir:{place.work}/"'
        mine.write_text(f'{mine.read_text()}[{section}]\n\tpath = {place.work}/gitconfig\n')

    assert 'has `core.sshcommand`' in place.run('git push origin main', 'host')
    assert not place.pwned.exists()


def test_a_linked_work_tree_shows_its_repository(place):
    place.host('git worktree add -q ../linked -b side')
    place.work = place.path / 'linked'
    place.open(SETTINGS)

    said = place.run('git push origin side', 'host')

    assert 'side -> side' in said
    assert f'repository: {place.path}/work/.git' in place.questions[0]


@pytest.mark.parametrize(
    'script',
    [
        'mv .git ../elsewhere; ln -s ../elsewhere .git',
        'mv .git ../elsewhere; echo "gitdir: ../elsewhere" > .git',
        'rm .git/HEAD',
        'mv .git/objects .git/objects2',
    ],
)
def test_a_repository_that_is_not_as_git_makes_it_is_refused(place, script):
    place.host(script)

    assert all(place.run(command, 'host').startswith('refused: ') for command in ('git push origin main', 'tool'))
    assert place.questions == []


def test_where_there_is_no_repository_other_programs_run(place):
    place.host('rm -rf .git')

    assert place.run('tool x', 'host') == 'tool ran: x'
    assert 'There is no repository here' in place.run('git push origin', 'host')
    assert place.questions == [[OUTSIDE, f'program: {place.bin}/tool, in {place.work}']]


def test_more_than_a_question_can_show_is_refused(place):
    for at in range(9):
        place.host(f'git config --add remote.origin.pushurl git@h{at}.example:x')

    assert 'too long for a question' in place.run('git push origin main', 'host')


@pytest.mark.parametrize('words', ['"$1" = config', '"$1 $2" = "remote get-url"'])
def test_git_that_gives_no_answer_is_refused(place, words):
    place.script(place.bin / 'git', f'if [ {words} ]; then exit 3; fi; exec {GIT} "$@"')

    assert 'cannot be read' in place.run('git push origin main', 'host')


def test_git_that_cannot_be_asked_is_refused(place):
    place.script(place.bin / 'git', 'exit 1')
    assert 'Git uses another repository' in place.run('git push origin main', 'host')

    (place.bin / 'git').write_text('#!/nowhere')
    place.open(SETTINGS)
    assert 'cannot be determined' in place.run('git push origin main', 'host')


def test_a_call_that_does_not_end_keeps_the_call_from_running(place):
    place.open(SETTINGS.replace('shell:\n', 'shell:\n      timeout_s: 1\n'))
    turns = place.workspace.files.turns
    assert turns.begin()

    assert 'Another command still runs' in place.run('tool', 'host')


def test_a_variable_that_leads_into_a_loop_of_links_is_left_out(place, monkeypatch):
    (place.path / 'loop').symlink_to(place.path / 'loop')
    monkeypatch.setenv('DOCKER_CONFIG', str(place.path / 'loop'))
    place.script(place.bin / 'tool', 'env')
    place.open(SETTINGS)

    assert 'DOCKER_CONFIG' not in place.run('tool x', 'host')


def test_a_hook_that_cannot_be_copied_stops_the_run(place, monkeypatch):
    place.script(place.work / '.git/hooks/pre-push', 'true')
    state = place.path / 'state'
    monkeypatch.setenv('XDG_STATE_HOME', str(state))
    place.open(SETTINGS)
    place.answer = lambda: bool(
        [(state / 'tool-approval').mkdir(parents=True), (state / 'tool-approval/hooks').touch()]
    )

    assert 'The call was not run' in place.run('git push origin main', 'host')
    assert not place.is_pushed


@pytest.fixture
def remote(place):
    with serving(place.path) as address:
        yield address


def test_a_push_and_a_fetch_over_http_use_the_credentials_of_the_user(place, remote):
    place.host(f'git config remote.origin.url {remote}; git config --global credential.helper store')
    (place.home / '.git-credentials').write_text(
        remote.replace('//', '//ann:s3cret@').removesuffix('/store.git') + '\n'
    )
    place.open(SETTINGS)

    pushed = place.run('git push origin main')
    place.host('git update-ref -d refs/remotes/origin/main')
    inside = place.run('git fetch origin', 'git', 'network')
    fetched = place.run('git fetch origin', 'host')

    assert 'main -> main' in pushed
    assert place.is_pushed
    assert f'remote origin: {remote}' in place.questions[0]
    assert 'credential helper: store' in place.questions[0]
    assert "Call `git fetch` alone, with access=['host']; the user is asked." in inside
    assert 'origin/main' in fetched

    place.open(SETTINGS.replace('git fetch, ', ''))

    assert 'Tell the user to run `git fetch`, or to add' in place.run('git fetch origin', 'git', 'network')
    assert 'keys or logins' not in place.run('git fetch nowhere', 'git')
    assert 'Tell the user to clone it' in place.run(f'git clone -q {remote} copy', 'git', 'network')
    place.host('rm -rf .git')
    assert 'keys or logins' not in place.run('git fetch origin', 'write')


def test_credentials_in_an_address_are_used_and_not_shown(place, remote):
    place.host(f'git config remote.origin.url {remote.replace("//", "//ann:s3cret@")}')

    said = place.run('git push origin main')

    assert 'main -> main' in said
    assert f'remote origin: {remote}' in place.questions[0]
    assert 's3cret' not in f'{place.ui.requests[0].model_dump_json()}'


@pytest.mark.parametrize('mark', ['?', '#', '\\\\'])
def test_an_address_that_looks_like_one_of_another_host_is_refused(place, remote, mark):
    place.host(f"git config remote.origin.url '{remote.rpartition('/')[0]}{mark}@github.com/me/shop.git'")

    said = place.run('git push origin main', 'host')

    assert place.questions == []
    assert 'Ask the user to run it' in said or 'cannot' in said, said


def test_no_part_of_a_path_is_left_out_of_the_question():
    urls = ('https://ann:s3cret@a.example/me/shop-secret=/../../x.git', 'git@a.example:me/password=/x.git')

    assert Remote(name='origin', urls=urls).shown == ('https://a.example/me/shop-secret=/../../x.git', urls[1])


def test_words_cannot_be_hidden_between_line_continuations(place):
    said = place.run('git push' + ' \\\n' * 300 + ' origin main', 'host')

    assert place.questions == []
    assert 'one simple command' in said


def test_a_program_for_credentials_that_commands_can_write_is_refused(place, remote):
    script = place.script(place.work / 'helper', place.attack)
    for value in (f'!{script} x', './helper', f'"{script}"', '!f() { ./helper; }; f'):
        place.host(f"git config remote.origin.url {remote}; git config --global credential.helper '{value}'")

        said = place.run('git push origin main', 'host')

        assert 'is where commands can write' in said, value
    assert not place.pwned.exists()


@pytest.mark.parametrize('is_given', [True, False])
def test_the_toolset_of_an_agent_asks_a_person_too(place, is_given):
    pytest.importorskip('pydantic_ai_deferred')
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai_deferred import Agent
    from tool_approval.integrations.pydantic_ai import Approvals, ShellToolset

    def respond(messages, info):
        if len(messages) > 1:
            return ModelResponse([TextPart(str(messages[-1].parts[0].content))])
        return ModelResponse([ToolCallPart('run_shell', {'command': 'git push', 'access': ['host']})])

    place.answer = lambda: is_given
    agent = Agent(FunctionModel(respond), toolsets=[ShellToolset(place.workspace.shell)])

    said = agent.run_sync('go', deferred_tool_handler=Approvals(place.controller)).output

    assert ('main -> main' in said) == is_given == place.is_pushed
    assert [lines[0] for lines in place.questions] == [OUTSIDE]


def test_a_call_without_a_person_is_denied(place):
    with pytest.raises(ApprovalDenied):
        asyncio.run(
            execute_tool(
                place.workspace.shell,
                RUN_SHELL,
                {'command': 'tool', 'access': ['host']},
                ApprovalController('strict', policy=place.workspace.policy),
            )
        )

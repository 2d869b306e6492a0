"""What the sweep moves away after a command, and what it leaves alone. Scripts play the command, without a sandbox."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

import pytest
from tool_approval.os_sandbox import before as noted
from tool_approval.os_sandbox import sweep
from tool_approval.os_sandbox.before import Before, hold, is_shared, take
from tool_approval.os_sandbox.git_mounts import MAKES
from tool_approval.os_sandbox.journal import Journal, finish_all
from tool_approval.os_sandbox.tree import Tree

GIT = Path('/usr/bin/git')
CONFIG = '[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n'
EVIL = '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {}; false\\n'
LIMIT_S = 60
ATTACKS = tomllib.loads((Path(__file__).parents[1] / 'settings/git_attacks.toml').read_text())
BY_MOUNTS = ('hook', 'filter and textconv')
"""What the sweep cannot see, or what happens before it: only the read-only mounts stop it."""

pytestmark = pytest.mark.skipif(not GIT.is_file(), reason='git is not installed below /usr')


class Ground:
    """`work` is a repository with three commits, and the only folder to which the command can write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work, self.home, self.state, self.pwned = (path / name for name in ('work', 'home', 'state', 'pwned'))
        self.git = self.work / '.git'
        self.tree = Tree()
        self.said: tuple[str, ...] = ()

    def host(self, script: str, folder: Path | None = None, *, fails: bool = False) -> str:
        """What the user's shell prints."""
        values = {'HOME': str(self.home), 'PATH': '/usr/bin:/bin', 'GIT_EDITOR': 'true', 'PWNED': str(self.pwned)}
        done = subprocess.run(
            ['/bin/bash', '-c', script],
            cwd=folder or self.work,
            env={**values, 'EVIL': EVIL.format(self.pwned)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert fails or done.returncode == 0, (script, done.stdout)
        return done.stdout.strip()

    def settle(self, until_ns: int = 0) -> None:
        """Wait until a change is later than all changes before, as the clock of the file system has it."""
        until_ns = until_ns or time.time_ns() + 2 * noted._TICK_NS  # pyright: ignore[reportPrivateUsage]
        probe = self.path / 'probe'
        while not probe.exists() or probe.stat().st_ctime_ns <= until_ns:
            probe.touch()

    def note(self, *, git: bool = True, makes: bool = False, roots: tuple[Path, ...] = (), absent=()) -> Before:
        before = take(
            [str(each) for each in roots or (self.work,)],
            str(self.git) if git else None,
            tree=self.tree,
            absent=[str(each) for each in absent],
            closed=() if git else (str(self.git),),
            makes=makes,
            limit_s=LIMIT_S,
        )
        hold(before)
        return before

    def call(self, script: str, *, fails: bool = False, during: str = '', **options) -> str:
        """What the result of a command says after the sweep. `during` runs meanwhile on the host."""
        journal = Journal.of(str(self.state), str(self.work))
        try:
            journal.write(self.note(**options))
            self.host(script, fails=fails)
            self.host(during)
            self.said = journal.finish(self.tree)
            assert journal.finish(self.tree) == ()
        finally:
            journal.close()
        return '\n'.join(self.said)

    def killed(self, script: str, afterwards: str = '', **options) -> str:
        """What the next start says of a command whose process died. `afterwards` is what the user does before it."""
        journal = Journal.of(str(self.state), str(self.work))
        before = self.note(**options)
        self.host(script)
        before.ends_ns = time.time_ns()
        journal.write(before)
        journal.close()
        self.settle(before.ends_ns)
        self.host(afterwards)
        return '\n'.join(finish_all(str(self.state)))


@pytest.fixture(scope='module')
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ground = Ground(tmp_path_factory.mktemp('template'))
    for each in (ground.work, ground.home):
        each.mkdir()
    (ground.home / '.gitconfig').write_text(CONFIG)
    ground.host('git init -q; for i in 1 2 3; do echo $i > f; echo $i > g$i; git add -A; git commit -qm c$i; done')
    return ground.path


@pytest.fixture
def ground(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    # The folder of the tests is itself one for temporary files, which many programs write to.
    monkeypatch.setattr(noted, '_SHARED', ())
    shutil.copytree(template, tmp_path / 'ground', symlinks=True)
    return Ground((tmp_path / 'ground').resolve())


def test_a_command_that_leaves_nothing_odd_is_not_mentioned(ground: Ground):
    script = (
        'echo n > n; git add n; git commit -qm n; git checkout -qb side HEAD~2; git stash list; git tag v; git gc -q; '
        'git merge -q main; git worktree add -q ../wt; git worktree remove ../wt; git reflog expire --all'
    )

    assert ground.call(script) == ''
    assert not (ground.git / 'commondir').exists()
    ground.host('git fsck --strict')


@pytest.mark.parametrize('attack', [name for name in ATTACKS if name not in BY_MOUNTS])
def test_without_a_sandbox_the_sweep_alone_leaves_nothing_that_runs(ground: Ground, attack: str):
    said = ground.call(ATTACKS[attack]['script'], fails=True, makes=True, absent=[ground.work / 'approvals.yaml'])

    for command in ('git status', 'git diff', 'git commit --allow-empty -m x', 'git rebase --continue', 'git reset -q'):
        ground.host(f'timeout 10 {command}', fails=True)
    ground.host('for each in */; do (cd $each; timeout 10 git status); done', fails=True)
    prompt = '. /usr/lib/git-core/git-sh-prompt; __git_ps1 a b; echo "${PS1@P}"'
    ground.host(f'test ! -e /usr/lib/git-core/git-sh-prompt || {{ {prompt}; }}', fails=True)
    assert not ground.pwned.exists(), said
    assert ground.host('git rev-parse --is-inside-work-tree') == 'true'


class TestWhatIsOfOthers:
    """Only what was made during the command, in a folder to which it could write, is moved."""

    def test_what_was_there_before_stays_whatever_it_is(self, ground: Ground):
        (ground.work / 'approvals.yaml').touch()
        ground.host(
            'git init -q old; printf "$EVIL" > old/.git/config; mkdir bare; '
            'cp -r .git/objects .git/refs .git/HEAD .git/config bare; ln -s ../elsewhere .git/link; '
            'touch .git/other .git/index.lock; '
            'mkdir .git/rebase-merge; echo "exec true" > .git/rebase-merge/git-rebase-todo'
        )
        before = ground.host('find . -type f -o -type l | sort | xargs -d "\\n" ls -lid')

        said = ground.call('true', absent=[ground.work / 'missing/approvals.yaml'])

        assert said == f'a git operation is unfinished in {ground.git}: rebase-merge'
        assert ground.host('find . -type f -o -type l | sort | xargs -d "\\n" ls -lid') == before

    def test_nothing_outside_of_the_folders_of_the_command_is_moved(self, ground: Ground):
        script = 'mkdir ../beside; git init -q ../beside/a; printf "$EVIL" > ../beside/a/.git/config; ln -s ../beside b'

        assert ground.call(script) == ''
        assert (ground.path / 'beside/a/.git/config').exists()

    @pytest.mark.parametrize('makes', ['git init -q sub', 'git init -q --bare sub', 'git init -q sub; cd sub; touch a'])
    def test_an_empty_repository_stays_whoever_has_made_it(self, ground: Ground, makes: str):
        assert ground.call('true', during=makes, git=False).startswith(f'new repository: {ground.work}/sub')

    def test_a_clone_stays_only_if_the_command_was_to_make_one(self, ground: Ground):
        first = ground.call('git clone -q . one', makes=True)
        second = ground.call('git clone -q . two')

        assert first == f'new repository: {ground.work}/one/.git'
        assert f'moved {ground.work}/two/.git to ' in second
        assert 'no command was to make it, and it has [remote "origin"]' in second
        assert (ground.work / 'two/f').exists()

    @pytest.mark.parametrize('path', ['.', 'sub'])
    def test_the_host_may_configure_a_repository_meanwhile(self, ground: Ground, path: str):
        ground.host('git init -q sub')
        change = (
            f'git -C {path} remote add o https://example.org/a; rm -r {path}/.git/hooks; mkdir {path}/.git/hooks; '
            f'touch {path}/.git/hooks/x.sample'
        )

        assert ground.call('true', during=change) == ''
        assert ground.host(f'git -C {path} remote') == 'o'

    def test_a_line_that_the_configuration_had_may_stay_but_not_in_another_section(self, ground: Ground):
        ground.host('git config alias.fsmonitor status')

        kept = ground.call('true', during='git config user.name Ben')
        moved = ground.call('true', during='printf "[core]\\n\\tfsmonitor = status\\n" > .git/config')

        assert kept == ''
        assert f'moved {ground.git}/config to ' in moved
        assert ground.host('git config user.name; git config alias.fsmonitor') == 'Ben\nstatus'

    @pytest.mark.parametrize('which', ['root', 'home', 'above the home', 'temporary'])
    def test_a_folder_that_many_programs_write_to_is_not_searched(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, which: str
    ):
        monkeypatch.setenv('HOME', str(ground.path / 'far/home'))
        monkeypatch.setattr(tempfile, 'tempdir', str(ground.path / 'far'))
        if which == 'home':
            monkeypatch.setenv('HOME', str(ground.path))
        if which == 'above the home':
            monkeypatch.setenv('HOME', str(ground.path / 'a/b'))
        if which == 'temporary':
            monkeypatch.setattr(tempfile, 'tempdir', str(ground.path))
        root = Path('/') if which == 'root' else ground.path
        assert not is_shared(str(ground.work))
        assert is_shared(str(root))

        said = ground.call(
            'git init -q ../sub; printf "$EVIL" > ../sub/.git/config; touch ../approvals.yaml',
            git=False,
            roots=(root,),
            absent=[ground.path / 'approvals.yaml'],
        )

        assert 'approvals.yaml: no command may make it' in said
        assert (ground.path / 'sub/.git/config').exists()
        assert len(ground.said) == 1

    def test_the_usual_folders_for_temporary_files_are_shared(self):
        assert is_shared('/tmp')
        assert is_shared('/var')
        assert not is_shared('/tmp/project')

    def test_what_the_user_has_made_before_the_next_start_stays_and_is_named(self, ground: Ground):
        said = ground.killed(
            'git init -q bad; printf "$EVIL" > bad/.git/config; touch .git/index.lock',
            'git clone -q . mine; echo > approvals.yaml; rm .git/index.lock; git config alias.x "!x"; '
            'touch .git/index.lock',
            absent=[ground.work / 'approvals.yaml'],
        )

        assert f'moved {ground.work}/bad/.git to ' in said
        for path in ('mine/.git', 'approvals.yaml', '.git/config'):
            assert f'left {ground.work}/{path}, which was made after the command: ' in said
            assert (ground.work / path).exists()
        assert (ground.git / 'index.lock').exists()
        assert not (ground.git / 'commondir').exists()
        assert 'lock' not in said


class TestLocks:
    def test_a_lock_that_the_command_left_is_removed(self, ground: Ground):
        ground.host('touch .git/HEAD.lock')

        said = ground.call('touch .git/index.lock .git/refs/heads/main.lock .git/HEAD.lock')

        assert said.startswith('removed locks that the command left: ')
        assert f'{ground.git}/index.lock' in said
        assert f'{ground.git}/refs/heads/main.lock' in said
        assert (ground.git / 'HEAD.lock').exists()
        ground.host('rm .git/HEAD.lock; git commit -q --allow-empty -m x')

    @pytest.mark.parametrize('path', ['work', 'tree'])
    def test_a_lock_stays_and_is_named_while_git_runs_on_the_host(self, ground: Ground, path: str):
        ground.host('git worktree add -q ../tree')
        waiting = subprocess.Popen(
            [str(GIT), 'cat-file', '--batch'], cwd=ground.path / path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert waiting.stdin is not None and waiting.stdout is not None
            waiting.stdin.write(b'HEAD:f\n')
            waiting.stdin.flush()
            assert waiting.stdout.readline()

            said = ground.call('touch .git/index.lock')
        finally:
            waiting.kill()
            waiting.communicate()

        assert said == f'git runs here; if no git does, remove these locks: {ground.git}/index.lock'
        assert (ground.git / 'index.lock').exists()

    @pytest.mark.parametrize(('is_there', 'stays'), [(True, True), (False, False)])
    def test_a_process_whose_folder_is_secret_may_be_git_until_it_has_ended(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool, stays: bool
    ):
        process = tmp_path / '77'
        process.mkdir()
        (process / 'comm').write_text('git\n')

        def look(path: str) -> str:
            if not is_there:
                shutil.rmtree(process)
            raise PermissionError(path)

        inside = sweep.inside
        monkeypatch.setattr(sweep, 'inside', lambda path: [str(process)] if path == '/proc' else inside(path))
        monkeypatch.setattr(sweep.os, 'readlink', look)

        ground.call('touch .git/index.lock')

        assert (ground.git / 'index.lock').exists() == stays

    def test_where_processes_cannot_be_listed_a_lock_stays(self, ground: Ground, monkeypatch: pytest.MonkeyPatch):
        there = os.path.exists
        monkeypatch.setattr(sweep.os.path, 'exists', lambda path: path != '/proc/self/comm' and there(path))

        assert ground.call('touch .git/index.lock').startswith('git runs here; if no git does')


class TestWhatIsReported:
    def test_changed_files_that_run_later_and_folders_that_are_closed(self, ground: Ground):
        (ground.work / 'Makefile').touch()
        (ground.work / 'package.json').touch()
        ground.host('mkdir .vscode; touch .vscode/old.json')
        ground.settle()

        said = ground.call('echo x >> Makefile; touch .vscode/tasks.json; mkdir -m 0 closed', git=False)

        later, *closed = said.splitlines()
        what, paths = later.split(': ')
        assert what == 'files that run later outside of the sandbox have changed'
        assert sorted(paths.split(', ')) == [f'{ground.work}/.vscode/tasks.json', f'{ground.work}/Makefile']
        if os.getuid():
            assert closed == [f'these folders could not be searched for repositories: {ground.work}/closed']

    def test_a_folder_that_cannot_be_searched(self, ground: Ground, monkeypatch: pytest.MonkeyPatch):
        """Root can search every folder."""
        scan = os.scandir

        def refuse(path):
            if str(path).endswith('/closed'):
                raise PermissionError
            return scan(path)

        monkeypatch.setattr(os, 'scandir', refuse)

        assert ground.call('mkdir closed') == (
            f'these folders could not be searched for repositories: {ground.work}/closed'
        )

    def test_many_names_are_cut(self, ground: Ground):
        said = ground.call('for i in $(seq 25); do mkdir d$i; touch d$i/Makefile; done')

        assert said.endswith(' and 5 more')

    def test_unfinished_operations_and_removed_branches(self, ground: Ground):
        ground.host('git checkout -qb side HEAD~1; echo s > f; git commit -qam side; git branch gone; git tag t')
        gone = ground.host('git rev-parse gone')

        said = ground.call('git branch -qD gone; git tag -d t; git rebase main; true', fails=True)

        assert f'a git operation is unfinished in {ground.git}: rebase-merge' in said
        assert f'removed from {ground.git}: refs/heads/gone (was {gone}), refs/tags/t (was {gone})' in said


def test_another_spelling_of_a_guarded_name_is_moved_only_if_it_is_new(ground: Ground):
    (ground.work / 'APPROVALS.yaml').touch()
    ground.settle()

    said = ground.call('touch approvals.yaml Approvals.yaml', absent=[ground.work / 'approvals.yaml'])

    assert len(os.listdir(ground.state / 'set-aside')) == 2
    assert said.count('no command may make it') == 2
    assert (ground.work / 'APPROVALS.yaml').exists()


def test_a_guarded_git_that_is_made_is_judged_as_a_repository(ground: Ground):
    (ground.work / 'sub').mkdir()
    absent = [ground.work / 'sub/.git']

    bad = ground.call('git init -q sub; printf "$EVIL" > sub/.git/config', absent=absent)
    good = ground.call('git init -q sub', absent=absent)

    assert f'moved {ground.work}/sub/.git to ' in bad
    assert good == f'new repository: {ground.work}/sub/.git'


def test_a_new_work_tree_stays_if_the_command_was_to_make_one(ground: Ground):
    assert ground.call('git worktree add -q wt', makes=True) == f'new repository: {ground.work}/wt/.git'
    assert 'it leads git elsewhere' in ground.call('git worktree add -q other')
    ground.host('mkdir -p a; git -C wt status')


def test_a_module_of_a_clone_is_judged_like_a_repository(ground: Ground):
    other = ground.path / 'other'
    allow = '-c protocol.file.allow=always'
    ground.host(f'git clone -q . {other}; git {allow} submodule -q add {other} sub; git commit -qm sub')

    made = ground.call(f'git {allow} clone -q --recurse-submodules . ours', makes=True)
    spoilt = ground.call(
        f'git {allow} submodule -q add {other} more; printf "$EVIL" > .git/modules/more/config', makes=True
    )

    whole = ground.call(
        f'git {allow} clone -q --recurse-submodules . theirs; printf "$EVIL" > theirs/.git/config', makes=True
    )

    assert len(whole.splitlines()) == 3
    assert f'moved {ground.work}/theirs/.git to ' in whole
    assert f'moved {ground.work}/theirs/sub/.git to ' in whole
    assert made.splitlines()[:2] == [
        f'new repository: {ground.work}/ours/.git',
        f'new repository: {ground.work}/ours/.git/modules/sub',
    ]
    assert f'moved {ground.git}/modules/more to ' in spoilt
    assert f'moved {ground.work}/more/.git to ' in spoilt
    assert 'new submodules in the index: more' in spoilt
    assert 'A  more' in ground.host('git status --short')


@pytest.mark.parametrize(
    ('script', 'why'),
    [
        ('rm sub/.git/config', 'it is a link, or incomplete'),
        ('rm sub/.git/HEAD', 'it is a link, or incomplete'),
        ('ln -s sub/.git .GIT', 'it is a link, or incomplete'),
        ('ln sub/.git/config alias', 'its configuration has another name, too'),
        ('git -C sub config core.fsmonitor x', "its configuration has the line 'fsmonitor = x'"),
        ('touch sub/.git/hooks/post-commit', 'it has hooks'),
        ('touch sub/.git/other', 'it has other'),
        ('echo ../.git > sub/.git/commondir', 'it has commondir'),
        ('mkdir -p sub/.git/objects/info; echo x > sub/.git/objects/info/alternates', 'it has objects/info/alternates'),
        ('ln -s x sub/.git/description2; ln -sf x sub/.git/info', 'it has description2'),
        ('rm -r sub/.git/info; ln -s x sub/.git/info', 'info: git makes no link or special file here'),
        ('echo "ref: refs/heads/\\$(x)" > sub/.git/HEAD', 'HEAD: git does not write this content'),
        ('mkdir sub/.git/rebase-merge; echo x > sub/.git/rebase-merge/msgnum', 'msgnum: git does not write'),
        ('mkdir sub/.git/sequencer; echo "exec x" > sub/.git/sequencer/todo', 'todo: git would run, or does not'),
        ('echo nothing > sub/.git/index', 'index: it has no index; `git reset` makes a new one'),
    ],
)
def test_a_new_repository_stays_only_as_git_makes_it(ground: Ground, script: str, why: str):
    said = ground.call(f'git init -q sub; {script}', makes=True)

    assert f'moved {ground.work}/' in said
    assert why in said


def test_what_is_set_aside_is_no_repository_and_can_be_moved_whatever_its_permissions(ground: Ground):
    script = 'git init -q sub; printf "$EVIL" > sub/.git/config; chmod 0 sub/.git/HEAD; chmod 500 sub/.git sub'

    ground.call(script)

    [aside] = (ground.state / 'set-aside').iterdir()
    assert aside.name.endswith('-git')
    assert (aside / 'HEAD.set-aside').exists()
    assert stat.S_IMODE((ground.state / 'set-aside').stat().st_mode) == 0o700
    ground.host('git status', aside, fails=True)
    assert not ground.pwned.exists()


def test_permissions_that_are_in_the_way_are_changed(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Root needs no permission."""
    monkeypatch.setattr(sweep.os, 'access', lambda path, mode: False)

    ground.call('git init -q sub; printf "$EVIL" > sub/.git/config; chmod 500 sub')

    assert stat.S_IMODE((ground.work / 'sub').stat().st_mode) == 0o700


def test_on_another_file_system_it_is_renamed_where_it_is(ground: Ground):
    ground.state.mkdir(mode=0o700)
    (ground.state / 'set-aside').write_text('a file')

    said = ground.call('git init -q sub; printf "$EVIL" > sub/.git/config')

    assert f'moved {ground.work}/sub/.git to {ground.work}/sub/git.set-aside-' in said


@pytest.mark.parametrize('script', ['ln -s ../later sub/.git', 'mkfifo sub/.git', 'echo gitdir: ../later > sub/.git'])
def test_what_may_lead_to_a_repository_later_is_moved(ground: Ground, script: str):
    assert f'moved {ground.work}/sub/.git to ' in ground.call(f'mkdir sub; {script}', makes=True)


def test_an_index_that_git_could_not_read_before_stays(ground: Ground):
    (ground.git / 'index').write_text('broken')

    assert ground.call('true') == ''


def test_a_head_that_was_planted_gives_way_to_the_old_one(ground: Ground):
    said = ground.call('echo "ref: refs/heads/\\$(x)" > .git/HEAD')

    assert 'HEAD to ' in said
    assert ground.host('git symbolic-ref HEAD') == 'refs/heads/main'


def test_a_guarded_file_that_was_removed_is_made_again(ground: Ground):
    ground.host('git init -q sub')

    said = ground.call('rm .git/config; rm -r sub/.git; rm .git/commondir')

    assert said == ''
    assert ground.host('git config core.bare') == 'false'


def test_a_link_in_place_of_a_configuration_or_of_hooks_is_moved(ground: Ground):
    said = ground.call(
        'cp .git/config other; ln -sf ../other .git/config; rm -r .git/hooks; ln -s ../h .git/hooks; mkdir h'
    )

    assert f'moved {ground.git}/config to ' in said
    assert f'moved {ground.git}/hooks to ' in said
    assert not (ground.git / 'config').is_symlink()


def test_a_name_that_no_command_may_make_is_moved_from_the_folder_of_a_linked_work_tree(ground: Ground):
    ground.host('git worktree add -q ../wt')

    said = ground.call('printf "$EVIL" > .git/worktrees/wt/config.worktree')

    assert f'moved {ground.git}/worktrees/wt/config.worktree to ' in said


class TestTheJournal:
    def test_only_one_command_at_a_time_has_it(self, ground: Ground):
        first = Journal.of(str(ground.state), '/a')

        with pytest.raises(BlockingIOError):
            Journal.of(str(ground.state), '/a')
        Journal.of(str(ground.state), '/b').close()
        assert finish_all(str(ground.state)) == ()
        first.close()

        Journal.of(str(ground.state), '/a').close()

    def test_what_was_written_by_halves_means_that_nothing_ran(self, ground: Ground):
        journal = Journal.of(str(ground.state), '/a')
        journal.close()
        [path] = (ground.state / 'sweeps').iterdir()
        for text in ('{"roots": ', json.dumps({'roots': []})):
            path.write_text(text)

            assert finish_all(str(ground.state)) == ()
            assert path.read_text() == ''

    def test_a_sweep_that_fails_is_repeated(self, ground: Ground, monkeypatch: pytest.MonkeyPatch):
        def full(*paths: str) -> None:
            raise OSError('full')

        with monkeypatch.context() as patch:
            patch.setattr(sweep.os, 'rename', full)
            with pytest.raises(OSError, match='full'):
                ground.call('git init -q sub; printf "$EVIL" > sub/.git/config')

        assert f'moved {ground.work}/sub/.git to ' in '\n'.join(finish_all(str(ground.state)))
        assert finish_all(str(ground.state)) == ()


@pytest.mark.parametrize(
    ('command', 'is_to_make_one'),
    [('git clone a', True), ('git -C x init', True), ('git commit -m init', True), ('make', False), ('git log', False)],
)
def test_words_say_whether_a_repository_is_to_be_made(command: str, is_to_make_one: bool):
    assert bool(MAKES.search(command)) == is_to_make_one

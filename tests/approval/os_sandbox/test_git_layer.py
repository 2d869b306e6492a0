"""Real git on a layer of `.git` in real bubblewrap, as root and as an ordinary user: what works, and what is gained."""

import fcntl
import multiprocessing
import os
import signal
import threading
import tomllib
from pathlib import Path

import pytest
from tool_approval.os_sandbox import UnconfinedBackend, git_files, git_layer, git_objects, git_writes
from tool_approval.os_sandbox.access import ExtraAccess
from tool_approval.os_sandbox.git_objects import _alternates  # pyright: ignore[reportPrivateUsage]
from tool_approval.os_sandbox.git_writes import _locks  # pyright: ignore[reportPrivateUsage]
from tool_approval.os_sandbox.layer import layer_problem, open_layer

from .house import LIMIT_S, PYTHON, House
from .layers import Repository

once = pytest.mark.parametrize('house', ['root' if os.getuid() == 0 else 'ordinary'], indirect=True)
"""For what does not depend on who runs it."""
UNKEPT = tomllib.loads(Path(__file__).with_name('unkept.toml').read_text())['group']


@pytest.fixture
def repo(house: House, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return Repository(house, monkeypatch)


def test_git_works(repo: Repository):
    status, output, notes = repo.run(
        """set -e
        echo a > a; git add a; git commit -qm a
        git checkout -qb side; echo b > b; git add -A; git commit -qm b
        git checkout -q main; echo c > c; git add -A; git commit -qm c
        git merge -qm merged side; git branch -qd side; git tag v1; git tag -am two v2
        echo stashed >> a; git stash -q; echo again >> a; git stash -q; git stash pop -q; git checkout -q a
        echo amended > d; git add d; git commit -q --amend -m amended
        git mv b e; git rm -q c; git gc -q
        """
    )

    assert (status, output, notes) == (0, '', ())
    assert repo.git('log', '--format=%s').splitlines() == ['amended', 'c', 'b', 'a', 'two', 'one']
    assert repo.git('log', '-1', '--format=%an <%ae>') == 'Ann "A" \\ Other <ann@example.org>\n'
    assert repo.git('for-each-ref', '--format=%(refname)').split() == [
        'refs/heads/main',
        'refs/stash',
        'refs/tags/v1',
        'refs/tags/v2',
    ]
    assert len(repo.git('stash', 'list').splitlines()) == 1
    assert sorted(repo.git('status', '--short').splitlines()) == ['D  c', 'R  b -> e']
    assert len(repo.git('reflog').splitlines()) == 11
    repo.git('fsck', '--strict')
    repo.git('commit', '-qm', 'on the host')


def test_git_fetches(repo: Repository):
    # More objects than git unpacks one by one: it keeps the pack.
    other = repo.house.path / 'other'
    repo.git('clone', '-q', str(repo.house.lib / 'bare'), str(other))
    for number in range(120):
        (other / f'{number}').write_text(f'{number}\n')
    repo.house.own()
    repo.git('add', '-A', folder=other)
    repo.git('commit', '-qm', 'three', folder=other)
    repo.git('push', '-q', folder=other)
    repo.git('remote', 'add', 'origin', str(repo.house.lib / 'bare'))

    first = repo.run('git -c safe.directory="*" fetch -q origin main && git merge -q FETCH_HEAD && git tag fetched')
    second = repo.run('git -c safe.directory="*" fetch -q origin && git status -s')

    assert (first, second) == ((0, '', ()), (0, '', ()))
    assert repo.git('log', '-1', '--format=%s %D') == 'three HEAD -> main, tag: fetched, origin/main\n'
    assert len(list((repo.path / 'objects/pack').glob('*.idx'))) == 1
    repo.git('fsck', '--strict')


def test_what_decides_what_git_runs_is_dropped_and_named(repo: Repository):
    before = repo.files()

    status, output, notes = repo.run(
        """
        git config core.fsmonitor 'touch /tmp/pwned'; git config core.hooksPath ../hooks
        echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
        echo '* filter=evil' > .git/info/attributes; echo ../evil > .git/commondir; echo x > .git/info/grafts
        echo /etc > .git/objects/info/alternates; mkdir .git/worktrees; ln -s /etc/passwd .git/gitdir
        mkfifo .git/fifo; touch $'.git/new\\nline'; ln -s ../../../lib .git/refs/link; mkdir -p .git/logs/refs/x
        ln -sf ../file.txt .git/COMMIT_EDITMSG; echo x > .git/refs/heads/broken; echo x > .git/logs/refs/x/y
        """
    )

    assert (status, output) == (0, '')
    assert notes == (
        (
            f'dropped from {repo.path}: COMMIT_EDITMSG, commondir, config, fifo, gitdir, hooks/pre-commit, '
            'info/attributes, info/grafts, logs/refs/x/y, new\\nline and 4 more'
        ),
    )
    assert repo.files() == before


def test_a_hook_gains_nothing(repo: Repository):
    hook = repo.path / 'hooks/pre-commit'
    hook.write_text('#!/bin/sh\necho evil >> .git/config; cp "$0" .git/hooks/post-checkout; rm -rf .git/objects/??\n')
    hook.chmod(0o755)
    repo.house.own()
    before = repo.files('config', 'hooks', 'objects')

    status, _, notes = repo.run('echo x > x; git add x; git commit -qm x')

    assert repo.files('config', 'hooks') == {name: each for name, each in before.items() if 'objects' not in name}
    assert before.items() <= repo.files().items()
    assert status != 0
    assert notes == (f'no change to {repo.path} was kept: objects that the repository needs are missing or broken',)


@pytest.mark.parametrize(
    'script',
    [
        'rm -rf .git/* .git',
        (
            'chmod -R u+w .git/objects-before; rm -rf .git/objects-before; for each in .git/objects-before/*/*; do '
            'echo x > "$each"; mv "$each" x; done; touch .git/objects-before/x; umount .git/objects-before'
        ),
        'mv .git other; mkdir .git',
        'rm -rf .git/refs .git/logs .git/packed-refs; mkdir .git/refs',
    ],
)
def test_history_cannot_be_destroyed(repo: Repository, script: str):
    objects = repo.files('objects')
    first, second = repo.git('rev-list', '--reverse', 'HEAD').split()

    _, _, notes = repo.run(script)

    assert repo.files('objects') == objects
    assert repo.git('log', '-1', '--format=%s', second) == 'two\n'
    assert repo.git('rev-list', '--all', '--reflog').split() == [second, first]
    assert len(notes) <= 1


@once
def test_too_much_that_is_gone_is_refused(repo: Repository):
    for number in range(21):
        repo.git('commit', '-q', '--allow-empty', '-m', f'{number}')
        repo.git('branch', f'b{number}')
        repo.git('reset', '-q', '--hard', 'HEAD~')
    before = repo.files()

    _, _, notes = repo.run('git for-each-ref --format="%(refname:short)" "refs/heads/b*" | xargs git branch -qD')

    assert notes == (
        f'no change to {repo.path} was kept: 21 branches, tags or stashes would be removed, too many to list',
    )
    assert repo.files() == before


@once
def test_what_is_gone_is_named(repo: Repository):
    repo.git('branch', 'kept')
    repo.git('checkout', '-qb', 'gone')
    repo.git('commit', '-q', '--allow-empty', '-m', 'gone')
    commit = repo.git('rev-parse', 'HEAD').strip()
    repo.git('checkout', '-q', 'main')
    repo.git('pack-refs', '--all')

    _, _, notes = repo.run('git branch -qD gone kept; git stash -q -u; git stash drop -q')

    assert notes == (f'removed from {repo.path}: refs/heads/gone (was {commit})',)
    assert repo.git('branch', '--format=%(refname:short)') == 'main\n'
    assert not (repo.path / 'logs/refs/heads/gone').exists()


@once
def test_a_log_only_grows(repo: Repository):
    before = repo.git('reflog')

    _, _, notes = repo.run('git reflog expire --expire=now --all; git checkout -q --detach')

    assert notes == (f'dropped from {repo.path}: logs/HEAD, logs/refs/heads/main',)
    assert repo.git('reflog').splitlines()[1:] == [
        line.replace('@{1}', '@{2}').replace('@{0}', '@{1}') for line in before.splitlines()
    ]
    repo.run('rm -r .git/logs; git tag x')
    assert len(repo.git('reflog').splitlines()) == 3


@once
@pytest.mark.parametrize(
    ('group', 'script'),
    [pytest.param(group, script, id=group['title']) for group in UNKEPT for script in group['scripts']],
)
def test_what_would_harm_the_repository_is_not_kept(repo: Repository, group: dict[str, str], script: str):
    before = repo.files()

    _, _, [note] = repo.run(script)

    problem = note.removeprefix(f'no change to {repo.path} was kept: ')
    if 'note' in group:
        assert problem == group['note'], group['reason']
    else:
        assert problem.startswith(group['note_begins']), group['reason']
    assert repo.files() == before


@once
def test_a_forged_object_is_none(repo: Repository):
    before = repo.files()
    code = """if True:
        import hashlib, os, sys, zlib
        def put(name, data):
            os.makedirs(f'.git/objects/{name[:2]}', exist_ok=True)
            open(f'.git/objects/{name[:2]}/{name[2:]}', 'wb').write(data)
        put('1' * 40, zlib.compress(b'blob 1\\0x'))
        for data in (b'blob 2\\0x', b'blob 1\\0xx', b'blub 1\\0x', b'blob 1x', b'', b'blob 99999\\0' + b'x' * 99998):
            put(hashlib.sha1(data).hexdigest(), zlib.compress(data))
        put(hashlib.sha1(b'blob 1\\0a').hexdigest(), zlib.compress(b'blob 1\\0a') + b'more')
        put(hashlib.sha1(b'blob 1\\0b').hexdigest(), zlib.compress(b'blob 1\\0b')[:-3])
        put('2' * 40, b'not packed at all')
        os.symlink('/etc/passwd', '.git/objects/11/' + '3' * 38)
        good = b'blob 70000\\0' + b'y' * 70000
        put(hashlib.sha1(good).hexdigest(), zlib.compress(good))
    """

    _, _, notes = repo.run(f'exec {PYTHON} -I -c "$1"', code)

    assert len(notes) == 1
    assert notes[0].startswith(f'dropped from {repo.path}: objects/')
    assert notes[0].endswith(' and 1 more')
    assert repo.files() == before


@once
def test_the_index_of_a_pack_is_not_believed(repo: Repository):
    # It says that the file of the last commit is another object of the pack.
    blob = repo.git('rev-parse', 'HEAD:file.txt').strip()
    code = """if True:
        import glob, hashlib, sys
        [path] = glob.glob('.git/objects/pack/*.idx')
        data = bytearray(open(path, 'rb').read())
        count = int.from_bytes(data[1028:1032])
        names = [bytes(data[1032 + 20 * n : 1052 + 20 * n]) for n in range(1, count)]
        names = sorted([bytes.fromhex(sys.argv[1]), *names])
        data[1032 : 1032 + 20 * count] = b''.join(names)
        for first in range(256):
            data[8 + 4 * first : 12 + 4 * first] = sum(name[0] <= first for name in names).to_bytes(4)
        data[-20:] = hashlib.sha1(data[:-20]).digest()
        import os; os.chmod(path, 0o644)
        open(path, 'wb').write(data)
    """

    status, _, notes = repo.run(
        f'echo 1 > 1; echo 2 > 2; git add -A; git commit -qm x; git repack -adlq; exec {PYTHON} -I -c "$1" "$2"',
        code,
        blob,
    )

    assert (status, notes) == (0, ())
    assert repo.git('cat-file', 'blob', blob) == 'two\n'
    assert repo.git('log', '-1', '--format=%s') == 'x\n'
    repo.git('fsck', '--strict')


@once
def test_an_index_leads_nowhere(repo: Repository):
    before = repo.files()
    code = """if True:
        import hashlib
        data = open('.git/index', 'rb').read()[:-20].replace(b',git/config', b'.git/config')
        open('.git/index', 'wb').write(data + hashlib.sha1(data).digest())
    """

    _, _, notes = repo.run(
        f'mkdir ,git; echo x > ,git/config; git add -A; git commit -qm x; exec {PYTHON} -I -c "$1"', code
    )

    problem = 'the git index contains a path that git would never write, such as a path in `.git`'
    assert notes == (f'no change to {repo.path} was kept: {problem}',)
    assert repo.files() == before


@once
@pytest.mark.parametrize('place', ['objects', 'objects/pack'])
def test_objects_of_another_repository_are_not_copied(repo: Repository, place: str):
    other = repo.house.outside / 'other'
    repo.git('clone', '-q', str(repo.house.work), str(other))
    (other / 'secret').write_text('s3cret')
    repo.house.own()
    repo.git('add', '-A', folder=other)
    repo.git('commit', '-qm', 'x', folder=other)
    repo.git('gc', '-q', folder=other)
    source = other / '.git' / place
    before = repo.files()

    _, _, notes = repo.run(
        f'rm -rf .git/{place}; ln -s "$1" .git/{place}; git tag x; git rev-parse HEAD > .git/refs/tags/y', source
    )

    assert {name: each for name, each in repo.files().items() if 'objects' in name} == {
        name: each for name, each in before.items() if 'objects' in name
    }
    assert notes == (f'no change to {repo.path} was kept: `objects` is not a folder',)


@pytest.mark.parametrize('ref', ['replace/$(git rev-parse HEAD~)', 'heads/-x', 'heads/a..b', 'heads/x.lock', 'top'])
def test_a_ref_of_another_kind_is_dropped(repo: Repository, ref: str):
    before = repo.files()

    _, _, notes = repo.run(f'mkdir -p .git/refs/replace; git rev-parse HEAD > ".git/refs/{ref}"')

    assert len(notes) == 1
    assert notes[0].startswith(f'dropped from {repo.path}: refs/')
    assert repo.files() == before


@once
def test_a_shallow_repository_is_deepened(repo: Repository):
    bare = repo.house.lib / 'bare'
    shallow = repo.house.work / 'shallow'
    repo.git('clone', '-q', '--depth=1', f'file://{bare}', str(shallow))
    repo.path = shallow / '.git'

    fetch = f'cd shallow && git -c safe.directory="*" fetch -q --unshallow file://{bare}'
    status, output, notes = repo.run(fetch, trees=(shallow,))

    assert (status, output, notes) == (0, '', ())
    assert len(repo.git('log', '--oneline', folder=shallow).splitlines()) == 2


@once
def test_operation_that_the_user_began_is_finished(repo: Repository):
    repo.git('checkout', '-qb', 'x', 'HEAD~')
    (repo.house.work / 'new').write_text('x')
    repo.git('add', 'new')
    repo.git('commit', '-qm', 'x')
    repo.git('merge', '-q', '--no-commit', 'main')

    status, _, notes = repo.run('git commit -qm merged')

    assert (status, notes) == (0, ())
    assert repo.git('log', '-1', '--format=%s %p').count(' ') == 2
    assert not {'MERGE_MSG', 'MERGE_HEAD', 'MERGE_MODE'} & set(os.listdir(repo.path))


def test_a_run_that_is_not_kept_leaves_nothing(repo: Repository, places: Path):
    before = repo.files()

    status, _, _ = repo.run('echo x > x; git add x; git commit -qm x; mkdir -m 0 .git/closed', keep=False)

    assert status == 0
    assert repo.files() == before
    assert not list(places.iterdir())


def test_a_concurrent_change_is_not_overwritten(repo: Repository):
    def commit() -> None:
        repo.git('commit', '-q', '--allow-empty', '-m', 'host')

    _, _, notes = repo.run('echo x > x; git add x; git commit -qm x', meanwhile=commit)

    problem = 'another program changed the repository in the meantime'
    assert notes == (f'no change to {repo.path} was kept: {problem}',)
    assert repo.git('log', '-1', '--format=%s') == 'host\n'
    assert not list(repo.path.rglob('*.lock'))


@once
def test_a_concurrent_change_of_something_else_is_no_conflict(repo: Repository):
    def tag() -> None:
        repo.git('tag', 'host')

    _, _, notes = repo.run('echo x > x; git add x; git commit -qm x', meanwhile=tag)

    assert notes == ()
    assert repo.git('log', '-2', '--format=%s %D') == 'x HEAD -> main\ntwo tag: host\n'


@once
def test_a_lock_of_another_process_is_respected(repo: Repository):
    before = repo.files()

    _, _, notes = repo.run(
        'echo x > x; git add x; git commit -qm x', meanwhile=lambda: (repo.path / 'index.lock').touch()
    )

    assert notes == (f'no change to {repo.path} was kept: `index.lock` exists: git is running or was killed',)
    assert repo.files() == before | {'index.lock': b''}


@once
@pytest.mark.parametrize(
    ('first', 'second'),
    [('x', 'x/y'), ('x/y', 'x')],
)
def test_a_ref_that_becomes_a_folder_is_refused(repo: Repository, first: str, second: str):
    repo.git('branch', first)
    before = repo.files()

    _, _, [note] = repo.run(f'git branch -m {first} {second}')

    assert note.startswith(f'no change to {repo.path} was kept: a name is both a ref and a folder of refs')
    assert {name: each for name, each in repo.files().items() if each} == {
        name: each for name, each in before.items() if each
    }


def test_folders_of_submodules_are_read_only(repo: Repository):
    inner = repo.path / 'modules/inner'
    inner.mkdir(parents=True)
    (inner / 'config').write_text('before\n')
    repo.house.own()

    _, output, notes = repo.run('cat .git/modules/inner/config; echo x > .git/modules/inner/config; mv .git/modules x')

    assert output.startswith('before\n')
    assert output.count('Read-only file system') == 2
    assert (inner / 'config').read_text() == 'before\n'
    assert notes == ()


@once
def test_hidden_path_is_not_in_the_layer(repo: Repository):
    for name in ('description', 'hooks/secret', 'modules/secret', 'logs/HEAD'):
        (repo.path / name).parent.mkdir(exist_ok=True)
        (repo.path / name).write_text('s3cret')
    (repo.house.lib / 'link').symlink_to(repo.path)
    repo.house.own()
    hidden = [repo.path / 'description', repo.house.lib / 'link/hooks', repo.path / 'modules', repo.path / 'logs']
    profile = repo.house.profile(protected=(str(repo.path),), hidden=tuple(map(str, hidden)))

    _, output, _ = repo.run('cat .git/description .git/*/*; find .git', profile=profile)

    assert 's3cret' not in output
    assert './description' not in output


@once
@pytest.mark.parametrize(
    ('prepare', 'why'),
    [
        ('mv .git ../lib/real; echo "gitdir: ../lib/real" > .git', '`.git` is not a folder'),
        ('echo ../../lib > .git/commondir', 'the work tree shares the repository of another work tree'),
        ('mv .git/refs x; ln -s ../x .git/refs', 'a file that git writes in `.git` is a symbolic link'),
        ('rm .git/HEAD; ln -s refs/heads/main .git/HEAD', 'a file that git writes in `.git` is a symbolic link'),
        ('mv .git/objects x; ln -s ../x .git/objects', 'a file that git writes in `.git` is a symbolic link'),
        ('rm .git/HEAD', '`.git` is not a repository'),
        ('mkdir .git/reftable', 'the format of the repository is not supported (reftable)'),
        (
            'git config extensions.partialClone origin',
            'the format of the repository is not supported (extensions...',
        ),
        ('git update-index --split-index', 'the git index is split'),
        ('rm -rf .git', '`.git` is not a folder'),
    ],
)
def test_a_repository_of_another_kind_has_no_layer(repo: Repository, prepare: str, why: str):
    repo.shell(prepare)
    repo.house.own()

    _, output, notes = repo.run('echo x > .git/x; touch .git/x')

    assert len(notes) == 1
    assert notes[0].startswith(f'{repo.path} cannot be written: {why}')
    assert output.count(': ') >= 3
    assert not (repo.path / 'x').exists()


@once
def test_path_closed_by_the_settings_has_no_layer(repo: Repository):
    house = repo.house
    protected = (str(repo.path),)
    profiles = [
        house.profile(protected=protected, hidden=(str(repo.path),)),
        house.profile(protected=(str(house.work),)),
        house.profile(protected=(*protected, str(repo.path / 'refs'))),
        house.profile(protected=protected, hidden=(str(repo.path / 'objects/pack'),)),
    ]

    for profile in profiles:
        _, _, [note] = repo.run('git tag x', profile=profile)

        assert 'cannot be written: ' in note
        assert repo.git('tag') == ''


@once
@pytest.mark.parametrize(
    ('limit', 'most', 'script', 'why'),
    [
        (
            'MOST_FILES',
            200,
            'mkdir .git/x .git/refs/x; touch .git/x/{1..300} .git/refs/x/{1..200}',
            'more than 200 files',
        ),
        ('MOST_BYTES', 1 << 20, 'truncate -s 9T .git/COMMIT_EDITMSG', 'more than 1 MiB'),
        ('MOST_BYTES', 1 << 20, 'truncate -s 9T .git/objects/pack/x.pack; git tag x', 'more than 1 MiB'),
        ('MOST_BYTES', 1 << 20, 'head -c 9M /dev/zero | git hash-object -w --stdin; git tag x', 'more than 1 MiB'),
        ('_MOST_PACKED_REFS', 1 << 20, 'git tag x; truncate -s 2M .git/packed-refs', 'packed refs of more than 1 MiB'),
        ('_DEEPEST', 5, 'mkdir -p .git/refs/1/2/3/4/5/6/7', 'deep'),
    ],
)
def test_a_layer_that_is_too_large_is_not_looked_at(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, script: str, why: str
):
    monkeypatch.setattr(git_files, limit, most)
    before = repo.files()

    _, _, [note] = repo.run(script)

    assert note.startswith(f'no change to {repo.path} was kept: the repository has ')
    assert why in note
    assert repo.files() == before


@once
def test_folders_without_end_are_removed(repo: Repository, places: Path):
    deep = 'import os\nfor n in range(3000):\n os.mkdir("d"); os.chdir("d")'

    _, _, [note] = repo.run(f"cd .git/refs; exec {PYTHON} -I -c '{deep}'")

    assert 'deep' in note
    assert not list(places.iterdir())


def test_files_left_by_a_killed_process_are_removed_by_the_next(repo: Repository, places: Path):
    """A hostile command made it hard to remove. What is not certainly left over stays."""
    folders = {
        name: places / f'tool-approval-layer-{name}'
        for name in ('linked', 'file', 'open', 'locked', 'odd', 'another', 'interrupted')
    }
    folders['linked'].symlink_to(repo.house.lib)
    folders['file'].touch(mode=0o700)
    for name in ('open', 'locked', 'odd', 'another', 'interrupted'):
        folders[name].mkdir(mode=0o755 if name == 'open' else 0o700)
    (folders['odd'] / 'lock').symlink_to(repo.house.lib / 'bare/HEAD')
    (folders['locked'] / 'lock').touch()
    repo.house.own()
    if os.getuid() == 0:
        os.chown(folders['another'], 12345, -1)
    else:
        folders.pop('another').rmdir()
    before = sorted(path for path in repo.house.lib.rglob('*'))
    script = f"""cd .git/refs; mkdir -p closed/inner; ln -s / closed/root; ln -s {repo.house.lib} lib
        chmod 000 closed; {PYTHON} -I -c 'import os
for n in range(3000): os.mkdir("d"); os.chdir("d")'"""
    killed = multiprocessing.get_context('fork').Process(
        target=repo.run, args=(script,), kwargs={'meanwhile': lambda: os.kill(os.getpid(), signal.SIGKILL)}
    )

    with open(folders['locked'] / 'lock', 'r+b') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        killed.start()
        killed.join(LIMIT_S)
        left = {path for path in places.iterdir() if (path / 'git').is_dir()}
        status, _, notes = repo.run('git tag x')

    assert (status, notes) == (0, ())
    assert len(left) == 1
    assert set(places.iterdir()) == {*folders.values()} - {folders['interrupted']}
    assert sorted(path for path in repo.house.lib.rglob('*')) == before


def test_a_folder_for_temporary_files_that_cannot_be_listed_will_do(repo: Repository, places: Path):
    repo.house.own()
    places.chmod(0o2333)

    status, _, notes = repo.run('git tag x')

    assert (status, notes) == (0, ())
    assert repo.git('tag') == 'x\n'


@once
def test_without_git_there_is_no_layer(repo: Repository, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(git_layer, '_GIT', ())

    _, _, notes = repo.run('git tag x')

    assert notes == (f'{repo.path} cannot be written: git is not installed in a system folder',)


@once
def test_a_repository_may_borrow_objects(repo: Repository):
    shared = repo.house.work / 'shared'
    repo.git('clone', '-q', '--shared', str(repo.house.lib / 'bare'), str(shared))
    repo.path = shared / '.git'

    status, _, notes = repo.run('cd shared && echo x > x && git add x && git commit -qm x', trees=(shared,))

    assert (status, notes) == (0, ())
    assert repo.git('log', '--format=%s', folder=shared).split() == ['x', 'two', 'one']
    repo.git('fsck', folder=shared)


@once
def test_packs_and_packed_refs_are_worked_with(repo: Repository):
    for name in ('first', 'second'):
        (repo.house.work / name).write_text(name)
        repo.git('add', '-A')
        repo.git('commit', '-qm', name)
        repo.git('tag', '-am', name, name)
        repo.git('repack', '-q')
    (repo.house.work / 'third').touch()
    repo.git('add', 'third')
    repo.git('commit', '-qm', 'touched')
    repo.git('-c', 'pack.indexVersion=1', 'repack', '-q', '-d')
    repo.git('pack-refs', '--all')
    packs = {name: each for name, each in repo.files('objects').items() if '/pack' in name}

    status, output, notes = repo.run(
        'git tag -d first > /tmp/x; git tag -d second > /tmp/x; git tag -am new new HEAD~; git rm -q first; '
        'cp second copy; git add copy; '
        'git commit -qm third; cp .git/objects-before/pack/* .git/objects/pack; chmod -R u+w .git/objects'
    )

    assert (status, output) == (0, '')
    assert [note.split(':')[0] for note in notes] == [f'removed from {repo.path}']
    assert repo.git('tag') == 'new\n'
    assert {name: each for name, each in repo.files('objects').items() if '/pack' in name} == packs
    assert '^' not in (repo.path / 'packed-refs').read_text()
    repo.git('fsck', '--strict')


@once
def test_stashes_are_dropped_from_the_middle(repo: Repository):
    for text in ('x', 'y', 'z\r' + '1' * 40):
        (repo.house.work / 'file.txt').write_text(text)
        repo.git('stash', 'push', '-qm', text)
    middle = repo.git('rev-parse', 'stash@{1}').strip()

    status, _, notes = repo.run('git stash drop -q stash@{1}')

    assert (status, notes) == (0, (f'removed from {repo.path}: refs/stash (was {middle})',))
    assert len(repo.git('stash', 'list').splitlines()) == 2


@once
def test_links_and_pipes_that_were_there_are_nothing_new(repo: Repository):
    (repo.path / 'hooks/linked').symlink_to('../../hook')
    os.mkfifo(repo.path / 'pipe')

    status, output, notes = repo.run('readlink .git/hooks/linked; ls .git/pipe; git tag x; touch .git/pipe')

    assert output.splitlines()[0] == '../../hook'
    assert 'No such file' in output
    assert notes == (f'dropped from {repo.path}: pipe',)
    assert status == 0
    assert repo.git('tag') == 'x\n'


@once
def test_error_while_keeping_writes_is_reported(repo: Repository, monkeypatch: pytest.MonkeyPatch):
    def full(path: str, **times: object) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(git_writes.os, 'utime', full)

    _, _, notes = repo.run('echo x > x; git add x; git commit -qm x')

    assert notes == (f'{repo.path}: not all changes were kept: [Errno 28] No space left on device',)
    assert not list(repo.path.rglob('*.lock'))
    # The commit is there, and the index can be made again.
    repo.git('reset', '-q')
    assert repo.git('status', '--short') == ''


NESTED = 'git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub 2> /dev/null; '


@once
def test_a_submodule_that_the_user_added_is_committed(repo: Repository):
    repo.shell(NESTED + 'git -C sub commit -q --allow-empty -m y')

    status, output, notes = repo.run('git commit -qm sub; git branch other; git commit -q --allow-empty -m more')

    assert (status, output, notes) == (0, '', ())
    assert repo.git('ls-tree', '-r', '--name-only', 'other').split() == ['file.txt', 'sub']


@once
def test_the_commits_of_other_branches_may_have_submodules(repo: Repository):
    """As those that a fetch brings."""
    status, _, notes = repo.run(f'{NESTED} git checkout -qb other; git commit -qm x; git checkout -q main')

    assert (status, notes) == (0, ())
    assert repo.git('ls-tree', '-r', '--name-only', 'other').split() == ['file.txt', 'sub']


@once
@pytest.mark.parametrize('count', [9, 9_999])
def test_a_commit_that_differs_in_too_much_is_not_kept(repo: Repository, monkeypatch: pytest.MonkeyPatch, count: int):
    """Also where git has more to say than is read."""
    monkeypatch.setattr(git_objects, 'MOST_INDEX_BYTES', 200)

    _, _, notes = repo.run(f'mkdir x; touch x/{{1..{count}}}; git add -A; git commit -qm x')

    assert notes == (f'no change to {repo.path} was kept: the commit changes too many files',)
    assert repo.git('log', '--format=%s').split() == ['two', 'one']


@once
def test_a_check_that_takes_too_long_is_ended(repo: Repository, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(git_objects, '_CHECK', 'sleep 100')
    monkeypatch.setattr(git_objects, '_CHECK_S', 0.2)

    _, _, notes = repo.run('git tag x')

    assert notes == (f'no change to {repo.path} was kept: the check took more than 0.2 s',)
    assert repo.git('tag') == ''


def test_without_bubblewrap_there_is_no_layer(tmp_path: Path):
    backend = UnconfinedBackend()

    with open_layer(ExtraAccess(git=(str(tmp_path),)), None, backend) as layer:
        argv = layer.wrap(['true'], '/')

        assert argv == ['true']
        assert layer.keep(threading.Event()) == (layer_problem(backend),)


@once
def test_without_extra_access_nothing_is_made(house: House):
    with open_layer(ExtraAccess(network=True), house.profile(), house.backend) as layer:
        assert layer.wrap(['true'], '/') == house.backend.wrap(['true'], house.profile(), '/')
        assert layer.keep(threading.Event()) == ()
    assert layer_problem(house.backend) is None


def test_a_place_of_borrowed_objects_that_cannot_be_is_passed_over(tmp_path: Path):
    objects = tmp_path / 'objects'
    (objects / 'info').mkdir(parents=True)
    (objects / 'info' / 'alternates').write_bytes(b'a\0b\n')

    assert len(list(_alternates(str(objects)))) == 1


def test_a_lock_that_is_gone_does_not_keep_the_others(tmp_path: Path):
    with pytest.raises(RuntimeError, match='it broke'), _locks(str(tmp_path), ['a', 'b']):
        (tmp_path / 'a.lock').unlink()
        raise RuntimeError('it broke')

    assert list(tmp_path.iterdir()) == []

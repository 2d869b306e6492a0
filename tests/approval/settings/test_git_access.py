"""What a person approved works: a day of git, over several commands, as root and as an ordinary user."""

import os

import pytest

from .yard import Yard

OTHER = '    other: {root: ../other, mode: ro}\n'
once = pytest.mark.parametrize('yard', ['root' if os.getuid() == 0 else 'ordinary'], indirect=True)


def diverge(yard: Yard) -> None:
    """Make a branch `side` whose change of `f` conflicts with that of `main`."""
    yard.host('git checkout -qb side HEAD~1; echo s > f; git commit -qam side; git checkout -q main')


def test_commits_are_made_by_the_user_with_the_hooks_and_the_ignored_files_of_the_user(yard: Yard):
    hook = yard.git_folder / 'hooks/pre-commit'
    hook.write_text('#!/bin/sh\necho hook ran; test ! -e bad\n')
    hook.chmod(0o755)
    (yard.home / '.config/git').mkdir(parents=True)
    (yard.home / '.config/git/ignore').write_text('*.tmp\n')
    yard.own()

    made = yard.run('touch n a.tmp; git add -A; git commit -qm new')
    refused = yard.run('touch bad; git add bad; git commit -qm bad')
    amended = yard.run(
        'git rm -q --cached bad; rm bad; echo y >> n; git commit -qam more; git commit --amend -qm amended'
    )

    assert 'hook ran' in made
    assert '[exit status 1]' in refused
    assert 'exit status' not in amended
    assert yard.host('git log --format="%an <%ae> %s" -3').splitlines() == [
        'Ann <ann@example.org> amended',
        'Ann <ann@example.org> new',
        'Ann <ann@example.org> c3',
    ]
    assert yard.host('git ls-files') == 'f\ng1\ng2\ng3\nn'
    yard.host('git fsck --strict; git commit -q --allow-empty -m host')


def test_a_conflict_is_solved_over_several_commands(yard: Yard):
    diverge(yard)

    begun = yard.run('git merge side')
    yard.run('echo solved > f; git add f')
    done = yard.run('git commit -qm merged')

    assert 'CONFLICT' in begun
    assert '[a git operation is unfinished in ' in begun
    assert done == '[no output]'
    assert yard.host('git log -1 --format="%s %p"').count(' ') == 2
    assert yard.host('git status --short') == ''


@once
@pytest.mark.parametrize('command', ['git branch -d old', 'git remote remove up', 'git config user.name x'])
def test_what_needs_another_configuration_says_that_none_can_be_written(yard: Yard, command: str):
    yard.host('git branch old; git remote add up ../up')
    before = (yard.git_folder / 'config').read_bytes()

    said = [yard.run(command), yard.run(command, access=())]

    for each in said:
        assert ('Commands cannot change .git/config, even with approval' in each) == ('config file' in each)
        assert 'Call again' not in each
    assert 'Commands cannot change' in said[0]
    assert (yard.git_folder / 'config').read_bytes() == before
    assert ('old' in yard.host('git branch')) == ('branch' not in command)


def with_a_repository(yard: Yard) -> None:
    yard.host('git init -q sub; echo x > sub/x; git -C sub add x; git -C sub commit -qm x')


@pytest.mark.parametrize('command', ['rm -rf sub', 'rm -f --recursive ./sub/../sub'])
def test_a_repository_that_was_there_is_removed(yard: Yard, command: str):
    with_a_repository(yard)

    done = yard.run(command)

    assert done == '[no output]'
    assert not (yard.work / 'sub').exists()


@pytest.mark.parametrize('command', ['rm -rf --no-such-option sub', 'rm -rf sub', 'true', 'rm -rf other'])
def test_a_line_that_does_more_than_remove_changes_no_repository(yard: Yard, command: str):
    with_a_repository(yard)

    done = yard.run(f'{command}; printf "[core]\\n\\tfsmonitor = /bin/false\\n" >> sub/.git/config')

    assert 'Read-only file system' in done
    assert 'fsmonitor' not in yard.host('cat sub/.git/config')


def test_a_rebase_goes_on_over_several_commands(yard: Yard):
    diverge(yard)
    yard.host('git checkout -q side')

    yard.run('git rebase main')
    solved = yard.run('echo solved > f; git add f; GIT_EDITOR=true git rebase --continue')
    edited = yard.run('GIT_SEQUENCE_EDITOR="sed -i s/^pick/edit/" git rebase -i HEAD~2')
    amended = yard.run(
        'GIT_EDITOR=true git commit --amend -qm edited && git rebase --continue && git rebase --continue'
    )

    assert 'exit status' not in solved + edited + amended
    assert yard.host('git log --format=%s').splitlines() == ['side', 'edited', 'c2', 'c1']
    assert yard.host('git status --short --branch') == '## side'


def test_a_cherry_pick_is_solved_or_aborted_later(yard: Yard):
    diverge(yard)

    yard.run('git cherry-pick side')
    yard.run('git cherry-pick --abort')
    yard.run('git cherry-pick side')
    yard.run('echo solved > f; git add f; GIT_EDITOR=true git cherry-pick --continue')

    assert yard.host('git log -2 --format=%s').splitlines() == ['side', 'c3']
    assert yard.host('git status --short') == ''


def test_stashes_tags_branches_and_a_collection_of_garbage(yard: Yard):
    yard.host('git branch other HEAD~1')
    old = yard.host('git rev-parse other')

    said = [
        yard.run('echo z > f; git stash -q; git stash pop -q; git checkout -q f'),
        yard.run('git tag v1; git tag -am two v2; git mv g1 h1; git rm -q g2; git commit -qm moved'),
        yard.run('git gc -q; git pack-refs --all; git repack -adq'),
        yard.run('git branch -qD other'),
        yard.run('git revert --no-edit HEAD; git reset -q --hard HEAD~; git checkout -q -; git switch -qc last'),
    ]

    assert 'exit status' not in ''.join(said)
    assert f'[removed from {yard.git_folder}: refs/heads/other (was {old})]' in said[3]
    assert yard.host('git for-each-ref --format="%(refname)"').split() == [
        'refs/heads/last',
        'refs/heads/main',
        'refs/tags/v1',
        'refs/tags/v2',
    ]
    yard.host('git fsck --strict')


def test_a_linked_work_tree_is_made_used_and_removed(yard: Yard):
    made = yard.run('git worktree add -q wt -b feature')
    inside = yard.run('cd wt && echo w > w && git add w && git commit -qm in-wt')
    there = yard.run(
        'echo v > v; git add v; git commit -qm from-wt; git stash list; git rebase -q main', yard.work / 'wt'
    )
    removed = yard.run('git worktree remove --force wt')

    assert f'[new repository: {yard.work}/wt/.git]' in made
    assert 'exit status' not in made + inside
    assert removed == '[no output]'
    assert not (yard.work / 'wt').exists()
    assert f'the repository is in {yard.git_folder}, which is outside' in there or 'exit status' not in there
    assert yard.host('git log feature --format=%s').splitlines()[-4:] == ['in-wt', 'c3', 'c2', 'c1']
    assert yard.host('git worktree list').count('\n') == 0


def test_a_work_tree_of_a_repository_elsewhere_works_and_the_question_names_that_repository(yard: Yard):
    tree = yard.path / 'tree'
    yard.host(f'git worktree add -q {tree} -b feature')

    said = yard.run('echo v > v; git add v; git commit -qm from-tree', tree)

    assert said == '[no output]'
    assert yard.host('git log feature -1 --format=%s') == 'from-tree'
    assert yard.run('echo x > .git/config || cat ../work/f', tree).count('No such file or directory') == 1


def test_a_forged_file_does_not_open_a_repository_elsewhere(yard: Yard):
    tree = yard.path / 'tree'
    tree.mkdir()
    (tree / '.git').write_text(f'gitdir: {yard.git_folder}\n')
    yard.own()

    said = yard.run('git commit --allow-empty -qm forged', tree)

    assert f'this access cannot be granted: the repository is in {yard.git_folder}, which is outside' in said
    assert yard.host('git log -1 --format=%s') == 'c3'


def test_in_a_folder_of_a_repository_the_result_says_where_to_start(yard: Yard):
    (yard.work / 'sub').mkdir()
    yard.own()

    said = yard.run('git commit --allow-empty -qm sub', yard.work / 'sub')

    assert f'the repository is in {yard.work}: start in that directory, or add it to `sandbox.paths`' in said


def test_submodules_are_committed_added_and_updated(yard: Yard):
    other = yard.path / 'other'
    yard.new(other)
    yard.host(f'git submodule -q add {other} sub; git commit -qm sub')
    allow = '-c protocol.file.allow=always'

    inside = yard.run(
        'cd sub && echo 1 > q && git add q && git commit -qm insub && cd .. && git add sub && git commit -qm up'
    )
    there = yard.run(
        'echo 2 >> q; git commit -qam insub2', yard.work / 'sub', settings='    top: {root: .., mode: rw}\n'
    )
    added = yard.run(f'git {allow} submodule -q add {other} second && git commit -qm second', settings=OTHER)
    updated = yard.run(f'git {allow} submodule -q update --remote second', settings=OTHER)

    assert 'exit status' not in inside + there + updated
    assert '.gitmodules' in added
    assert yard.host('git -C sub log --format=%s -2').splitlines() == ['insub2', 'insub']
    assert yard.host('git submodule status').count('second') == 1


def test_repositories_are_cloned_made_and_fetched(yard: Yard):
    other = yard.path / 'other'
    yard.new(other)
    yard.host(f'git remote add other {other}')

    cloned = yard.run(f'git clone -q {other} vendored && git -C vendored log -1 --format=%s', settings=OTHER)
    made = yard.run('git init -q --bare store.git; git push -q "$PWD/store.git" main')
    fetched = yard.run('git fetch -q other && git log -1 --format=%s other/main', settings=OTHER)
    again = yard.run('cd vendored && git checkout -qb mine && git commit -q --allow-empty -m mine; git config a.b c')

    assert f'[new repository: {yard.work}/vendored/.git]' in cloned
    assert cloned.startswith('c3\n')
    assert f'[new repository: {yard.work}/store.git]' in made
    assert 'c3' in fetched
    assert 'could not write config file' in again
    assert yard.host('git -C vendored log -1 --format=%s; git -C store.git log -1 --format=%s') == 'mine\nc3'


@once
def test_a_repository_with_sha256_or_a_split_index_works(yard: Yard):
    yard.host(
        'rm -rf .git; git init -q --object-format=sha256; git add -A; git commit -qm 1; git update-index --split-index'
    )

    said = yard.run('echo x > x; git add x; git commit -qm two; git mv x y')

    assert said == '[no output]'
    assert yard.host('git status --short') == 'R  x -> y'


URL = 'https://ann:s3cret@example.org/a.git'


def test_no_command_reads_credentials_in_the_configuration_of_a_repository(yard: Yard):
    yard.host(f'git remote add origin {URL}; git config http.extraHeader "Authorization: Basic s3cret"')
    look = 'git remote -v; cat .git/config; git config --list; grep -r s3cret .git; cp .git/config x; cat x'

    for access in ((), ('git',)):
        said = yard.run(look, access=access)

        assert 'https://example.org/a.git (fetch)' in said
        assert 's3cret' not in said
    assert yard.run('echo x > f; git commit -qam two') == '[no output]'
    assert yard.host('git remote get-url origin') == URL


@once
def test_no_command_reads_credentials_of_a_repository_below(yard: Yard):
    yard.host(f'git init -q sub; git -C sub remote add o {URL}; git init -q --bare b; git -C b remote add o {URL}')
    yard.host('git config extensions.worktreeConfig true; git config --worktree http.extraHeader "X: s3cret"')

    for access in ((), ('git',)):
        said = yard.run('cat sub/.git/config b/config .git/config.worktree', access=access)

        assert said.count('https://example.org/a.git') == 2
        assert 's3cret' not in said
    assert yard.run('rm -r sub') == '[no output]'


@once
def test_filters_of_the_user_work(yard: Yard):
    yard.host('git config --global filter.up.clean "tr a-z A-Z"; git config --global core.autocrlf input')

    yard.run(
        'echo "*.up filter=up" > .gitattributes; echo text > a.up; printf "a\\r\\n" > b; git add -A; git commit -qm up'
    )

    assert yard.host('git show HEAD:a.up; git show HEAD:b') == 'TEXT\na'


@once
@pytest.mark.parametrize(
    ('script', 'problem'),
    [
        ('rm -rf .git', 'there is no repository in this directory or above it'),
        ('rm -rf .git/objects', 'or its `.git` is a symbolic link or broken'),
        ('mv .git ../elsewhere; ln -s ../elsewhere .git', 'or its `.git` is a symbolic link or broken'),
        ('mv .git/config ../config; ln -s ../../config .git/config', '.git/config is a symbolic link'),
        ('mv .git ../bare; echo gitdir: ../bare > .git', 'which is outside of the directories in the settings'),
        ('mv .git/* .; rm -rf .git', 'there is no repository in this directory or above it'),
    ],
)
def test_where_git_cannot_be_given_the_result_says_why(yard: Yard, script: str, problem: str):
    yard.host(script)
    before = yard.host(
        'find .. -path ../state -prune -o -path ../home -prune -o -newer ../work/g3 -print; git log -1', fails=True
    )

    said = yard.run('git commit -q --allow-empty -m x')

    assert problem in said
    assert 'this access cannot be granted' in said
    assert yard.host('git log -1', fails=True) in before

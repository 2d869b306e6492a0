from tests.tables import table

from .parts import decision, unasked


@table(
    ('pattern', 'command'),
    [
        ('git branch', 'git branch -v name'),
        ('git branch -v', 'git branch -v name'),
        ('git branch', 'git branch -a name'),
        ('git branch', 'git branch --track name'),
        ('git branch', 'git branch --sort --list name'),
        ('git branch', 'git branch --list --no-list name'),
        ('git branch', 'git branch --list --no-li name'),
        ('git branch', 'git branch -- name'),
        ('git branch', 'git branch -- --list'),
        ('git tag', 'git tag v1'),
        ('git tag', 'git tag -a -m text v1'),
        ('git tag', 'git tag -m -l v1'),
        ('git tag', 'git tag --sort -l v1'),
        ('git', 'git subtree push --prefix a b c'),
        ('git', 'git subtree --prefix a push b c'),
        ('git', 'git notes --ref x add'),
        ('git', 'git lfs push origin'),
        ('git', 'git update-ref refs/heads/a HEAD'),
        ('git', 'git cat-file --filters HEAD:f'),
        ('git', 'git send-email --smtp-server=/x'),
        ('git', 'git fast-export --export-marks=x'),
        ('git', 'git bisect run touch x'),
        ('git config core.pager', 'git config core.pager a.b'),
        ('git symbolic-ref', 'git symbolic-ref HEAD refs/heads/x'),
        ('git symbolic-ref', 'git symbolic-ref --delete HEAD'),
        ('git bisect run', 'git bisect run touch x'),
        ('git pull', 'git pull -s evil'),
        ('git stash drop', 'git stash drop --no-x && git stash clear'),
        ('git config', 'git config --get --no-get alias.p push'),
        ('git config', 'git config --get-all --no-get-all core.fsmonitor x'),
        ('git config', 'git config -l --no-list a.b c'),
        ('git config', 'git config --get a b c'),
        ('git config', 'git config --get --ad a.b c'),
        ('git config', 'git config'),
        ('git log', "git log --format='%+G?'"),
        ('git log', "git log --format='%-GG'"),
        ('git log', "git log --format='% GS'"),
        ('git for-each-ref', "git for-each-ref --format='%(*signature)'"),
        ('git branch', 'git branch --show-current --no-show-current new'),
        ('git apply --check', 'git apply --check --build-fake-ancestor=x p'),
        ('git push', 'git push origin :feat'),
        ('git push', 'git push origin +main'),
        ('git fetch', "git fetch origin '+refs/heads/*:refs/heads/*'"),
        ('git', "git remote-ext a 'sh -c x'"),
        ('git', 'git daemon'),
        ('git', 'git shell'),
        ('/usr/lib/git-core/git-remote-ext', "/usr/lib/git-core/git-remote-ext a 'sh -c x'"),
    ],
)
def test_what_makes_or_changes_something_is_asked_about(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'


@table(
    'command',
    [
        'git branch',
        'git branch -vv --all',
        'git branch -r',
        'git branch -al',
        "git branch --list 'feat*'",
        "git branch --format '%(refname:short)'",
        'git branch -a --contains HEAD',
        'git branch --merged main',
        'git branch --show-current',
        'git tag',
        'git tag -n3 v1',
        'git tag --sort=-v:refname',
        'git tag --points-at HEAD',
        'git notes show',
        'git stash list',
        'git remote show origin',
        'git subtree',
        'git symbolic-ref --short HEAD',
    ],
)
def test_git_subcommand_that_lists_is_allowed(command):
    assert decision(command, *unasked(' '.join(command.split()[:2]))) == 'allow'


@table(
    ('pattern', 'command'),
    [
        ('git branch -D', 'git branch -D name'),
        ('git branch name', 'git branch name'),
        ('git', 'git'),
        ('git -P', 'git -P'),
        ('git -C repo', 'git -C repo'),
        ('git stash drop', 'git stash drop'),
        ('git remote add', 'git remote add a b'),
        ('git config core.pager', 'git config core.pager'),
        ('git -C repo tag v1', 'git -C repo tag v1'),
        ('git bisect run ls', 'git bisect run ls'),
        ('git fetch', "git fetch origin '+refs/heads/*:refs/remotes/origin/*'"),
        ('git push', 'git push origin main:main'),
        ('git config', 'git config --get --bool a.b'),
        ('git config', 'git config --list --show-origin'),
        ('git branch', 'git branch --list --no-sort'),
        ('git log', "git log --format='%h %an%n'"),
    ],
)
def test_what_the_rule_names_is_allowed(pattern, command):
    assert decision(command, *unasked(pattern)) == 'allow'

"""What people and models write every day is allowed without a question."""

import pytest

from tests.tables import table

from .parts import OPEN, blocked, decision, unasked

READERS = unasked(
    'ls', 'cat', 'echo', 'grep', 'wc', 'head', 'tail', 'sort', 'find', 'git status', 'git log', 'git diff'
)
PLAIN = [
    'ls', 'ls -la src', 'cat README.md', 'cat -n a b c', "grep -rn 'def main' src", 'grep -E "a|b" f',
    'git status --short',
    'git log --oneline -n 5', "git log --since='2 weeks ago' --format='%h %s'", 'git diff HEAD~1 -- src',
    'git --no-pager log',
    "echo 'a; rm b'", 'echo "a && b"', 'echo "$HOME"', 'echo ${HOME}', 'echo $?', 'echo "$(ls)"',
    'echo $(cat f | wc -l)',
    'ls; git status', 'ls && cat f', 'ls || echo no', 'cat f | grep a | wc -l', 'ls 2>/dev/null', 'ls > /dev/null 2>&1',
    'wc -l < f', 'cat <<E\na $HOME\nE', "cat <<'E'\n$(rm a)\nE", 'cat <<E | grep a\nb\nE\nls', "grep a <<< 'a b'",
    '(ls; ls)',
    '{ ls; }', '! grep a f', 'if grep -q a f; then cat f; else ls; fi', 'for i in a b; do cat "$i"; done',
    'while grep a f; do ls; done', 'case $a in a|b) ls;; *) cat f;; esac', '/usr/bin/git status', '"git" status',
    'git \\\n  status', 'ls \\\n  -la', 'LC_ALL=C sort f', 'LC_ALL=C TZ=UTC ls', 'timeout 5 ls', 'nice -n 5 ls',
    'env ls',
    'env LC_ALL=C ls', "bash -c 'ls; git status'", 'sh -c ls', 'time ls', 'command ls', 'find . -name "*.py" -type f',
    'find . -name a -exec cat {} \\;', 'find src -name "*.py" | xargs wc -l', 'sort -k2,2n -u f', 'ls *.py', 'ls {a,b}',
    'ls ~/a',
    'cat my\\ file', "echo $'a\\tb'", 'echo a # a comment', '# a comment\nls', 'ls\n\nls\n', 'git log --grep "rm -rf"',
    'echo é',
    'ls | cat && echo done', 'a=1; echo $a', 'echo $((1 + 2))', 'echo a=b', 'git status &', 'cat f 2>&1 | head -n 20',
    'ls || true',
    'cat -- f', 'echo -e "a\\nb"', 'cat "a b" \'c d\'', 'ls -- *', 'git diff --stat --name-only', 'echo {1..3}', 'ls;',
    'ls &&\nls',
]  # fmt: skip


@table('command', PLAIN)
def test_readers_in_any_arrangement_are_allowed(command):
    assert decision(command, *READERS) == 'allow'


@table(
    ('pattern', 'command'),
    [
        ('pytest', 'pytest -q tests -k "a and b" --tb=short'),
        ('mypy', 'mypy src --strict'),
        ('npm test', 'npm test'),
        ('npm run build', 'npm run build'),
        ('python -m pytest', 'python -m pytest -q'),
        ('python', 'python script.py --flag'),
        ('python', 'python --version'),
        ('make', 'make test -j4'),
        ('cargo', 'cargo test --release'),
        ('go test', 'go test ./...'),
        ('git ls-files', "git ls-files '*.py'"),
        ('git remote -v', 'git remote -v'),
        ('git config --get', 'git config --get user.name'),
        ('git stash', 'git stash push -m wip'),
        ('git commit', 'git commit -m "rm old; done"'),
        ('sed -n', "sed -n '1,20p' f"),
        ('sed', "sed 's/a/b/g' f"),
        ('sed', "sed -e 's|a|b|' -e '/c/d' f"),
        ('awk', "awk '{print $1}' f"),
        ('uniq', 'uniq -c f'),
        ('date', 'date +%Y-%m-%d'),
        ('tar', 'tar tf a.tar'),
        ('curl -s', 'curl -s http://127.0.0.1:1/'),
        ('test', 'test -f a'),
        ('[', '[ -f a ] && [ 1 -lt 2 ]'),
        ('printf', "printf '%s\\n' a"),
        ('set', 'set -euo pipefail'),
        ('bash scripts/test.sh', 'bash scripts/test.sh --fast'),
        ('./run.sh a', './run.sh a'),
        ('jq', "jq '.a | .b' f"),
        ('rg', 'rg -n a src'),
        ('ruff check', 'ruff check src'),
        ('date', 'date -Iseconds'),
        ('date', "date -d '1 day ago' +%F"),
        ('date', 'date --date "2024-01-01" -u +%s'),
        ('date', 'date --reference=f'),
        ('uniq', 'uniq -c -f 1 f'),
        ('xxd', 'xxd -s 0x10 -l 32 f'),
        ('pytest', 'pytest -p no:cacheprovider --cov=src --cov-report=term-missing'),
        ('pytest', 'pytest -pno:randomly --cov-report term'),
        ('git branch', 'git branch -a -vv --sort=-committerdate'),
        ('git branch', "git branch -r --contains HEAD --format='%(refname:short)'"),
        ('git tag', "git tag -l 'v*' -n5"),
        ('tree', "tree -a -L 2 -I 'node_modules|dist' --dirsfirst"),
        ('tee', 'tee /dev/null'),
        ('tee build.log', 'tee build.log'),
        ('make', 'make -j4 --jobs=4 -k all'),
        ('sort', 'sort -u -- f'),
        ('git push', 'git push -u origin HEAD'),
    ],
)
def test_a_program_of_every_day_is_allowed_by_its_rule(pattern, command):
    assert decision(command, *unasked(pattern)) == 'allow'


@pytest.mark.parametrize(
    'command', ['mkdir a', 'cp a b', 'pytest', 'make', 'npm install', './run', 'git add a', 'cat rm']
)
def test_open_default_allows_commands_that_are_not_blocked(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'allow'


@pytest.mark.parametrize(
    'command', ['cd src && ls', '[ -f a ] && cat a', 'test -d a || ls', 'if [[ -f a ]]; then cat a; fi']
)
def test_a_question_and_a_change_of_directory_need_no_rule_of_their_own(command):
    assert decision(command, *READERS) == 'allow'
    assert decision(command, *READERS, default={'allowed': False}) == 'block'


def test_a_file_that_tee_may_write_is_written_unasked():
    rules = unasked('echo', 'tee')

    assert decision('echo a | tee -a f', *rules, is_writable=lambda path: path == '/here/f') == 'allow'
    assert decision('echo a | tee f g', *rules, is_writable=lambda path: path == '/here/f') == 'ask'
    assert decision('cd b && echo a | tee f', *rules, is_writable=lambda path: path == '/here/f') == 'ask'

import pytest

from tests.tables import table

from .parts import blocked, judge, unasked


@pytest.mark.parametrize(
    ('command', 'words'),
    [
        ('git commit -m "a b"', ('git', 'commit')),
        ('git stash push', ('git', 'stash', 'push')),
        ('npm run build', ('npm', 'run', 'build')),
        ('pip list', ('pip', 'list')),
        ('docker compose ps', ('docker', 'compose', 'ps')),
        ('pytest -q tests/a.py::b', ('pytest',)),
        ('python -m pytest -q tests/a.py', ('python', '-m', 'pytest')),
        ('python3 -m pytest', ('python3', '-m', 'pytest')),
        ('mkdir -p a/b /here/c', ('mkdir',)),
        ('touch a', ('touch',)),
        ('eslint', ('eslint',)),
    ],
)
def test_a_plain_command_offers_its_sub_command(command, words):
    assert judge().explain(command).remember == words


@table(
    'command',
    [
        'git fetch > a', 'git fetch < a', 'git fetch 2>/dev/null', 'A=1 git fetch', 'LC_ALL=C git fetch',
        'git fetch $(a)',
        'git fetch $a', 'git fetch "$a"', 'git fetch *', 'git fetch; ls', 'git fetch | cat', 'cat | git fetch',
        'git fetch\nls',
        'git fetch --upload-pack=a', 'git fetch ext::a', 'git -c a=b fetch', 'git -C a fetch', 'env git fetch',
        'sudo git fetch',
        'git', 'git --version', 'rm a', 'ls -l', 'python a.py', './git fetch', '/tmp/git fetch', '(git fetch)',
        'git stash -x',
        'uv run a', 'docker run a', 'npm exec a', 'git fetch <<< a', "sh -c 'git fetch'", 'git fetch &&',
        'git bisect run a',
        'pytest > a', 'A=1 pytest', 'pytest $a', 'pytest -p evil', 'pytest --brand-new', './pytest', 'pytest; ls',
        'python -m pytest -p evil', 'python -m pytest /tmp/a.py', 'python -m touch a', 'python -m', 'python -Im pytest',
        'A=1 python -m pytest', './python -m pytest', 'python -m pytest; ls', 'python -m pytest $a',
        'python -m pytest > a', 'sudo python -m pytest', 'python -c pytest', 'python -m pip list', 'python -m mypy',
        'pytest /tmp/a.py', 'pytest ..', 'mkdir /etc/a', 'mkdir ~/a', 'touch ../a', 'git add ../a', 'uv run pytest',
        'rmdir a', 'cp a b', 'mv a b', 'ln -s a b', 'tee a', 'dd of=a', 'truncate -s 0 a', 'shred a', 'chmod +x a',
        'curl a', 'ssh a', 'sed -n p a', 'awk 1 a', 'find .', 'make', 'bash a.sh', 'node a.js', 'timeout 5 pytest',
        'git submodule foreach a', 'git fetch\r', 'make -f a', 'go run a',
        'npm exe touch x', 'npm --silent exec touch x', 'npm -w a x touch x', 'npm create evil',
        'uv --directory x run touch', 'docker container run x touch', 'yarn node x',
    ],
)  # fmt: skip
def test_command_that_is_not_plain_offers_nothing_to_remember(command):
    explanation = judge().explain(command)

    assert explanation.remember is None or (command == '(git fetch)' and explanation.remember == ('git', 'fetch'))


def test_remembering_is_not_offered_for_allowed_or_blocked_commands():
    assert judge(*unasked('pytest')).explain('python -m pytest').remember is None
    assert judge(*unasked('git fetch')).explain('git fetch').remember is None
    assert judge(*blocked('git fetch')).explain('git fetch').remember is None

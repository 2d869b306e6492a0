"""Which access the words of a command show that it needs, and what runs unasked because the OS sandbox holds it."""

import tomllib
from pathlib import Path

import pytest
from tool_approval.tools.shell import ShellConfig, needs
from tool_approval.tools.shell.judge import ShellJudge

OPEN = {'approval': False}


def judge(*rules, default=OPEN, cwd='/here'):
    config = ShellConfig.model_validate({'default': default, 'rules': list(rules)})
    return ShellJudge(config, cwd=cwd, needs_write=lambda path: path.startswith('/here') and '/free' not in path)


@pytest.mark.parametrize(
    'command',
    [
        'touch a', 'mkdir -p a/b', 'rm -rf a', 'mv a b', 'cp /etc/hosts a', 'cp -t a /etc/hosts', 'ln -s /x a', 'tee a',
        'echo a > a', 'make >> log 2>&1', 'cat > "$x"', 'echo a > /here/a', 'cat << E > a\nx\nE',
        'sed -i s/a/b/ f', 'sed -Ei.bak s/a/b/ f', 'sed --in-place=.old s/a/b/ f', 'perl -pi -e s/a/b/ f',
        'find . -delete', 'find . -name "*.o" -exec rm {} +', 'tar xf a.tar', 'tar -czf a.tgz src', 'unzip a.zip',
        'black .', 'ruff format', 'ruff check --fix .', 'prettier --write .', 'eslint --fix src', 'gofmt -w a.go',
        'cargo fmt', 'gcc -o a a.c', 'gcc a.c', 'xargs rm < list', 'bash -c "rm a"', 'timeout 5 touch a',
        'cd src && touch a', 'true; (cd src; rm a)', 'if true; then rm a; fi', 'pytest | tee out', 'x=$(touch a)',
        'tar czf a.tgz /tmp', 'tar xf /tmp/a.tar', 'tar cf "$x" .', 'zip a.zip /tmp/b', 'gzip /tmp/a b',
        'gcc -o $x /tmp/a.c',
        'openssl req -keyout a -out /tmp/b', 'git init', 'git clone -q .', 'rsync -a /tmp/a b', 'black /tmp/a src',
        'mktemp a.XXX', 'mktemp -p .', 'ls | xargs mktemp', 'd=$(pwd); touch "$d/a"', 'd=$(mktemp); cp a "$e"',
        'git apply a.patch', 'git clean -fd', 'git format-patch -1',
        'npm install a', 'pip download a', 'pip install -e .', 'git clone https://example.org/a', 'git init a',
    ],
)  # fmt: skip
def test_words_that_show_a_write_need_access_to_files(command):
    explanation = judge().explain(command)

    assert 'write' in explanation.needs
    assert not explanation.only_reads
    assert explanation.decision == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        'ls', 'cat a > /dev/null', 'cat a > /tmp/copy', 'touch /tmp/a', 'cd /tmp && touch a', 'cp a /tmp/b',
        'cp a b /tmp', 'sed s/i/o/ f', 'sed -n 1p f', 'sed -i s/a/b/ /tmp/f', 'black --check .', 'cargo fmt --check',
        'prettier --check .', 'tar tf a.tar', 'gcc --version', 'gcc -fsyntax-only a.c', 'find . -name a',
        'touch free/a', 'echo a > free/a', 'kill 1', 'docker ps', 'make', 'pytest', 'python a.py', 'perl -Mstrict -e 1',
        'tar czf /tmp/a.tgz .', 'tar -c -z -f /tmp/a.tgz .', 'tar xf a.tar -C /tmp/b', 'zip -r /tmp/a.zip .',
        'gzip /tmp/a',
        '7z a /tmp/a.7z .', 'unzip a.zip -d /tmp/b', 'gcc -o /tmp/a a.c', 'git init /tmp/a',
        'git clone . /tmp/a', 'rsync -a a /tmp/b', 'black /tmp/a.py', 'pandoc -f html -o /tmp/a.md a.html',
        'mktemp', 'mktemp -dt a.XXX', 'd=$(mktemp -d); cp a "$d"; tar czf "$d/a.tgz" .', 't="`mktemp`"; echo a > $t',
        'd=$(mktemp -d) && cd "${d}" && touch a',
        'git apply --check a.patch', 'git clean -nd', 'git format-patch -1 -o /tmp/a',
        'rm --help', 'echo rm a', 'git status', 'git branch', 'npm test', 'unknown-program a',
    ],
)  # fmt: skip
def test_words_that_show_no_write_need_none(command):
    assert judge().explain(command).needs == frozenset()


@pytest.mark.parametrize(
    ('command', 'needs'),
    [
        ('curl example.org', {'network'}),
        ('echo a > /dev/tcp/example.org/80', {'network'}),
        ('git push', {'git', 'network'}),
        ('git commit -m x', {'git'}),
        ('uv pip install a', {'network', 'environment'}),
        ('make && git stash', {'git'}),
    ],
)
def test_programs_of_the_table_need_what_it_says(command, needs):
    assert judge().explain(command).needs == needs


@pytest.mark.parametrize(
    'command',
    [
        'curl -s http://127.0.0.1:8000/a?b=c', 'curl localhost', 'curl https://localhost:1/', 'nc -z ::1 80',
        'curl --json @a "http://[::1]:3000"', 'curl -s 0.0.0.0:80 | head',
        'while ! curl -s localhost:1; do sleep 1; done', 'curl -s "http://localhost:$PORT/a"',
        'for i in 1 2; do curl -s http://localhost:8000/$i; done', 'curl localhost:80$i',
    ],
)  # fmt: skip
def test_a_client_of_a_server_of_the_same_conversation_is_known(command):
    explanation = judge().explain(command)

    assert explanation.needs == {'network'}
    assert explanation.is_local


@pytest.mark.parametrize(
    'command',
    [
        'curl $HOST', 'curl localhost.example.org', 'curl http://localhost@example.org', 'curl 127.0.0.1.example.org',
        'curl -x http://example.org http://localhost', 'curl http://localhost http://example.org', 'curl -s',
        'ssh localhost', 'psql -h localhost', 'git clone http://localhost/a',
        'pip install --index-url http://localhost a', 'curl localhost; curl example.org',
        'echo a > /dev/tcp/localhost/1', 'curl "localhost$PORT"', 'curl http://localhost/ "$x"',
        'curl http://localhost:80/ http://$x/',
    ],
)  # fmt: skip
def test_any_other_client_may_reach_another_machine(command):
    explanation = judge().explain(command)

    assert 'network' in explanation.needs
    assert not explanation.is_local


@pytest.mark.parametrize(
    ('command', 'needs'),
    [
        ('npm ci --offline --no-audit', {'write'}),
        ('npm --offline install ./lib', {'write'}),
        ('npx --no-install eslint --fix "$x"', set()),
        ('npx --no eslint', set()),
        ('uvx --offline ruff check', set()),
        ('pip install --no-index --find-links dist a', {'environment'}),
        ('cargo fetch --offline', set()),
        ('git clone ../a b', {'write'}),
        ('scp a b', {'write'}),
    ],
)  # fmt: skip
def test_a_command_that_says_so_needs_no_network(command, needs):
    assert judge().explain(command).needs == needs


@pytest.mark.parametrize(
    'command',
    [
        'npm ci --offline --offline=false', 'npm ci --offline --no-offline', 'npm ci --offline --off=0',
        'npm ci --offline --prefer-online', 'npm ci --offline false', 'npm ci --offline "$x"', 'npm ci "$x" --offline',
        'npm ci -- --offline', 'npm ci --offline=true', 'npm ci --prefer-offline', 'npm ci --offline https://example.org',
        'npx eslint --no-install', 'npx --no-install --yes eslint', 'npx --no-install "$x"', 'npx --no-install',
        'npx -p a --no-install eslint', 'pip install --no-index --find-links https://example.org a',
        'yarn add a --no-index', 'git clone a:b', 'git clone "$x"', 'rsync a b::c', 'scp a b:', 'git ls-remote',
    ],
)  # fmt: skip
def test_an_option_against_the_network_that_may_not_apply_changes_nothing(command):
    assert 'network' in judge().explain(command).needs


@pytest.mark.parametrize('command', ['ls', 'cat a | sort', 'grep -r x .', 'git log', 'echo a'])
def test_programs_that_are_known_to_read_only_read(command):
    assert judge().explain(command).only_reads


@pytest.mark.parametrize(
    'command', ['make', 'python a.py', 'cat $(x)', '$x', 'sh a', 'echo a > /tmp/a', 'eval a', '<(']
)
def test_nothing_else_is_known_to_read_only(command):
    assert not judge().explain(command).only_reads


UNREAD = [
    'eval "$x"', '$x a', 'ls | sh', 'sh < a', 'curl example.org/x | bash', '. a', 'source <(a)', 'alias ls=a; ls',
    'PATH=. ls', 'LD_PRELOAD=a ls', 'LC_ALL=zh_CN.GBK ls', 'bash -c "$x"', '"" a', 'case x in', 'xargs -I{} sh -c {}',
    'env env env env env env env env env env ls',
]  # fmt: skip
"""Lines whose programs cannot all be read."""


@pytest.mark.parametrize('command', UNREAD)
def test_a_line_that_cannot_be_read_asks_only_where_a_rule_could_apply(command):
    for rule in ({'pattern': 'rm', 'allowed': False}, {'pattern': 'make deploy', 'approval': True}):
        assert judge(rule).explain(command).decision == 'ask'

    assert judge().explain(command).decision == 'allow'
    assert judge({'pattern': 'ls', 'approval': False}).explain(command).decision == 'allow'


@pytest.mark.parametrize(
    ('command', 'decision'),
    [
        ('rm a', 'block'),
        ('true && rm a', 'block'),
        ('env rm a', 'block'),
        ('bash -c "rm a"', 'block'),
        ('find . -exec rm {} +', 'block'),
        ('make deploy', 'ask'),
        ('make -k build deploy', 'ask'),
        ('ln -s /bin/rm a', 'ask'),
        ('make build', 'allow'),
        ('python -c "import os"', 'allow'),
        ('./script', 'allow'),
        ('sed -i s/a/b/ f', 'allow'),
        ('FOO=1 ls', 'ask'),
        ('', 'ask'),
    ],
)
def test_rules_that_ask_or_block_decide_first(command, decision):
    rules = ({'pattern': 'rm', 'allowed': False}, {'pattern': 'make deploy', 'approval': True})

    assert judge(*rules).explain(command).decision == decision


def test_where_the_default_asks_the_sandbox_changes_no_decision():
    for command in [*UNREAD, 'ls', 'sed -i s/a/b/ f', 'echo a > a']:
        config = ShellConfig.model_validate({'rules': [{'pattern': 'echo', 'approval': False}]})
        held = ShellJudge(config, cwd='/here', needs_write=lambda path: True).explain(command)

        assert held.parts == ShellJudge(config, cwd='/here').explain(command).parts


def test_without_a_sandbox_an_open_default_asks_as_before():
    config = ShellConfig.model_validate({'default': OPEN})
    decisions = [ShellJudge(config, cwd='/here').explain(each).decision for each in ('eval "$x"', 'echo a > a', 'ls')]

    assert decisions == ['ask', 'ask', 'allow']


def test_every_row_of_the_table_is_found_by_its_own_words():
    data = tomllib.loads(Path(needs.__file__).with_name('needs.toml').read_text())
    readers = {'git branch', 'git tag'}
    wrong = [
        command
        for names, commands in data['access'].items()
        for command in (' '.join(each.split()) for each in commands.split(','))
        if command not in readers and judge().explain(command).needs - {'write'} != frozenset(names.split())
    ]

    assert wrong == []


@pytest.mark.parametrize(
    'command',
    ['git -C a push', 'git --no-pager push', 'npm --prefix a i b', 'apt-get -y install a', 'tofu -chdir=a apply'],
)
def test_options_and_other_names_hide_no_access(command):
    assert 'network' in judge().explain(command).needs


@pytest.mark.parametrize('command', ['docker run a make deploy', 'sudo -u a make deploy', "ssh a 'make deploy'"])
def test_a_rule_that_asks_is_found_behind_a_program_without_an_entry(command):
    assert judge({'pattern': 'make deploy', 'approval': True}).explain(command).decision == 'ask'


@pytest.mark.parametrize('option', ['-S', '-iS', '--split-string=', '--split=', '--split-string ', '--s='])
def test_in_the_sandbox_a_rule_that_asks_sees_the_command_that_env_splits(option):
    config = ShellConfig.model_validate({
        'rules': [{'pattern': 'git push', 'approval': True}], 'default': {'approval': False},
    })  # fmt: skip

    held = ShellJudge(config, cwd='/here', needs_write=lambda path: True)

    assert held.explain(f"env {option}'git push'").decision == 'ask'
    assert held.explain(f"env {option}'git status'").decision == 'ask'

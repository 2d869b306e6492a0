import pytest
from tool_approval.tools.shell.names import alternatives, spellings

from tests.tables import table

from .parts import OPEN, blocked, decision, judge, unasked


@table(
    ('pattern', 'command'),
    [
        ('npm publish', 'npm publ'),
        ('npm publish', 'npm -w a pub'),
        ('npm publish', 'npm --prefix x publish'),
        ('npm publish', 'npm -w --loglevel silent publish'),
        ('npm install', 'npm i x'),
        ('npm install', 'npm isntall x'),
        ('npm i', 'npm install x'),
        ('npm exec', 'npm x touch'),
        ('npm run deploy', 'npm rum deploy'),
        ('npm run deploy', 'npm runScript deploy'),
        ('yarn publish', 'yarn publ'),
        ('cargo run', 'cargo r'),
        ('git push', 'git subtree push -P a b c'),
        ('git push', 'git subtree --prefix a push b c'),
        ('git push', 'git send-pack a'),
        ('git push', "sh -c 'git lfs push origin'"),
        ('git add', 'git stage .'),
        ('docker run', 'docker container run x'),
        ('docker push', 'docker image push x'),
        ('podman rmi', 'podman image rm x'),
        ('ip link set', 'ip l s eth0 down'),
        ('hg push', 'hg pus'),
        ('make deploy', 'make build deploy'),
        ('make deploy', 'make -j4 build deploy'),
        ('gradle publish', 'gradle build publ'),
        ('gradle publish', 'gradle :app:publish'),
        ('mvn deploy', 'mvn clean deploy:deploy'),
        ('docker rm', 'docker container remove x'),
    ],
)
def test_another_name_of_a_blocked_sub_command_is_blocked(pattern, command):
    assert decision(command, *blocked(pattern), default=OPEN) == 'block'


@pytest.mark.parametrize(
    ('pattern', 'command'),
    [
        ('rm -rf', 'rm -fr x'),
        ('rm -rf', 'rm -vfR x'),
        ('rm -rf', 'rm -f x -r'),
        ('rm -rf', 'rm --recursive --force x'),
        ('rm -rf', 'rm -r --f x'),
        ('rm -r -f', 'rm -f -r x'),
        ('rm --recursive --force', 'rm -fr x'),
        ('git push --force', 'git push -f'),
        ('git clean -xdf', 'git clean -fd -x'),
        ('x --a --b --c --d --e', 'x --a --b --c --d --e'),
    ],
)
def test_the_options_of_a_blocked_pattern_count_in_any_order_and_by_any_name(pattern, command):
    assert decision(command, *blocked(pattern), default=OPEN) == 'block'


@pytest.mark.parametrize(
    ('pattern', 'command'),
    [
        ('rm -rf', 'rm -r x'),
        ('rm -rf', 'rm -f x'),
        ('npm run', 'npm r x'),
        ('npm publish', 'npm install'),
        ('npm --foo', 'npm publ'),
        ('git push', 'git lfs ls-files'),
        ('docker run', 'docker container ls'),
        ('make deploy', 'make build'),
        ('cargo run', 'cargo ru'),
    ],
)
def test_the_name_of_another_one_is_not(pattern, command):
    assert decision(command, *blocked(pattern), default=OPEN) == 'allow'


def test_a_rule_that_approves_is_about_the_words_it_names():
    assert decision('npm t', *unasked('npm test')) == 'ask'
    assert decision('make build deploy', *unasked('make deploy')) == 'ask'


@pytest.mark.parametrize(
    ('pattern', 'command'),
    [
        ('npm', 'npm exe touch x'),
        ('npm', 'npm --silent exec touch x'),
        ('npm', 'npm -w a x touch x'),
        ('npm', 'npm create evil'),
        ('uv', 'uv --directory x run touch'),
        ('docker', 'docker container run x touch'),
        ('yarn', 'yarn node x'),
    ],
)
def test_a_runner_by_another_name_is_still_one(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'
    assert judge(default={'approval': True}).explain(command).remember is None


def test_the_words_of_a_pattern_come_first():
    assert alternatives(('npm', 'publish'))[0] == ('npm', 'publish')
    assert alternatives(('rm',)) == (('rm',),)
    assert spellings('git', 'status') == ('status',)
    assert spellings('ip', '-s') == ('-s',)

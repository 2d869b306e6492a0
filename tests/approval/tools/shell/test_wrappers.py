import pytest

from tests.tables import table

from .parts import OPEN, blocked, decision, judge, unasked


@pytest.mark.parametrize('wrapper', ['timeout', 'nice', 'xargs'])
def test_an_option_of_a_wrapper_that_is_not_known_is_asked_about(wrapper):
    explanation = judge(*unasked('ls'), default=OPEN).explain(f'{wrapper} "$a" ls')

    assert explanation.decision == 'ask'
    assert any(
        part.reason == '`"$a"` is unknown until the command runs, and may be an option' for part in explanation.parts
    )


def test_a_wrapper_without_a_command_or_a_rule_is_not_allowed():
    assert decision("env -S 'A=1'", default=OPEN) == 'ask'
    assert decision('sudo ls', default={'allowed': False}) == 'block'


def test_eval_takes_two_dashes_for_the_end_of_its_options():
    assert decision('eval -- ls', *unasked('ls')) == 'allow'
    assert decision('eval -- rm a', *blocked('rm'), default=OPEN) == 'block'


@pytest.mark.parametrize('option', ["-c 'rm a'", "--command='rm a'", "--command 'rm a'"])
def test_what_another_user_is_to_run_is_judged(option):
    assert decision(f'su a {option}', *blocked('rm'), default=OPEN) == 'block'


@pytest.mark.parametrize('command', ['command -pv rm', 'command -pV rm'])
def test_an_option_of_command_that_is_not_stepped_over_hides_nothing(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'block'


def test_to_ask_where_a_program_is_runs_nothing():
    assert decision('command -v node', *unasked('command -v')) == 'allow'
    assert decision('command -v node') == decision('command -V node') == 'allow'
    assert decision('command -v $x') == 'ask'
    assert decision('command -v rm', *blocked('rm'), default=OPEN) == 'allow'
    assert decision('command foo rm', *blocked('rm'), default=OPEN) == 'ask'


@pytest.mark.parametrize(
    'command',
    [
        'timeout 5$x ls', 'timeout 5* ls', 'nice -n $x ls', 'nice -n $(echo 5) ls', 'stdbuf -o $x ls',
        'env LC_ALL=$x ls',
        'env LC_ALL=a$(echo 1) ls', 'env -u a$x ls', 'env -u {A,B} ls', 'xargs -a $x cat', 'xargs -n 1"$@" cat',
        'xargs -P$x cat',
    ],
)  # fmt: skip
def test_where_words_in_front_of_the_command_may_multiply_it_is_asked(command):
    """Attack: `x='5 touch y'; timeout $x ls` runs `touch`."""
    assert decision(command, *unasked('ls', 'cat', 'echo', 'xargs', 'env')) == 'ask'


@pytest.mark.parametrize(
    'command', ['timeout "5$x" ls', 'nice -n "$x" ls', 'env LC_ALL="$x" ls', 'env LC_ALL=$((1 + 1)) ls']
)
def test_a_quoted_value_in_front_of_the_command_stays_one_word(command):
    assert decision(command, *unasked('ls')) == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        "xargs -I '' cat f",
        'xargs -I "$x" cat f',
        'xargs -I "a$x" cat f',
        'xargs -I $x cat f',
        "xargs --replace= cat '{}'",
    ],
)
def test_a_mark_that_is_empty_or_not_known_may_be_any_word(command):
    assert decision(command, *unasked('xargs', 'cat')) == ('allow' if '--replace' in command else 'ask')


@pytest.mark.parametrize(
    'shell',
    ['ksh93', 'bash5.2', 'bash-static', 'zsh-5.9', 'posh', 'osh', 'xonsh', 'lksh', 'oksh', '/opt/bash5',
        'bash-5.2-static']
)  # fmt: skip
def test_a_shell_of_any_version_is_one(shell):
    assert decision(f"{shell} -c 'rm v'", *blocked('rm'), default=OPEN) == 'block'
    assert decision(f'{shell} -c "r\'\'m v"', *blocked('rm'), default=OPEN) == 'block'
    assert decision(f'echo x | {shell}', *blocked('rm'), default=OPEN) == 'ask'
    assert decision(f'{shell} -c ls', *unasked('ls')) == 'ask'


@pytest.mark.parametrize('command', ['./timeout 5 ls', './bash -c ls', '/tmp/env ls', './nice ls'])
def test_a_wrapper_that_lies_anywhere_is_a_program_like_any_other(command):
    """Attack: a file that the agent wrote, by the name of a wrapper."""
    assert decision(command, *unasked('ls')) == 'ask'
    assert decision(f'/usr/bin/{command.rpartition("/")[2]}', *unasked('ls')) == 'allow'


@table(
    'command',
    [
        "hyperfine 'evil x'", "hyperfine ls 'evil x'", "hyperfine -w 3 --runs=5 ls 'evil x'", 'hyperfine ls -- evil',
        "hyperfine 'ls; evil'",
        'hyperfine "$x"', 'hyperfine "ls $x"', 'hyperfine ls $x', 'hyperfine -w $x ls',
        'hyperfine ls --export-markdown f',
        'hyperfine ls -C evil', 'hyperfine --conclude=evil ls', 'hyperfine ls --reference evil',
        'hyperfine -L x evil {x}', "hyperfine 'ls &>/dev/null evil'",
        'pee ls evil', 'mispipe ls evil', "concurrently -k ls 'evil x'", "concurrently 'npm:evil'", 'bench evil',
        "entr -s 'evil x'", "entr -cs 'ls; evil'", 'entr -s "$x"', 'entr -s', 'entr evil',
        'watch evil', "script -c 'evil x' /dev/null", "expect -c 'spawn evil'", 'parallel evil', 'sem evil',
        'sem --id a evil',
        'watchexec evil', 'watchexec -e js evil', 'nodemon evil', 'retry evil', 'rlwrap evil', 'gtime evil',
        'multitime evil', 'gtime -o f ls',
        'sshpass -p x evil', 'envdir d evil', 'setuidgid u evil', 'tsp evil', 'daemonize evil', 'bear -- evil',
        'rr record evil',
        'reflex -s evil', 'mpirun -n 2 evil', 'runcon -t x evil', 'doppler run evil', 'sops exec-env f evil',
        "pueue add 'evil x'", 'docker-compose exec web evil',
    ],
)  # fmt: skip
def test_a_command_that_a_program_is_given_to_run_is_judged_by_itself(command):
    """Attack: a rule approves `hyperfine`, and `hyperfine 'rm x'` removes."""
    assert decision(command, *unasked(command.split()[0], 'ls')) == 'ask'


@pytest.mark.parametrize(
    'command',
    [
        'hyperfine ls', "hyperfine -w 3 --runs=5 'ls -l' 'ls | wc -l'", 'hyperfine ls -i --style full', 'pee ls wc',
        'mispipe ls wc',
        'concurrently ls wc', "entr -s 'ls | wc'", 'entr -c ls', 'watchexec ls', 'gtime -v ls', 'sshpass ls',
    ],
)  # fmt: skip
def test_a_program_runs_the_commands_that_rules_approve(command):
    assert decision(command, *unasked(command.split()[0], 'ls', 'wc')) == 'allow'
    assert decision(command, *unasked('ls', 'wc')) == 'ask'


@pytest.mark.parametrize(
    'command', ["hyperfine 'rm v'", "hyperfine ls 'ls; rm v'", "pee cat 'rm v'", "entr -s 'rm v'", 'watchexec rm v']
)
def test_a_blocked_command_stays_blocked_in_a_string_that_a_program_runs(command):
    assert decision(command, *blocked('rm'), *unasked(command.split()[0]), default=OPEN) == 'block'


@table(
    ('rule', 'command'),
    [
        ('strace', 'strace -o f ls'), ('strace', 'strace -fof ls'), ('strace', 'strace -o "|evil" ls'),
        ('strace', 'strace -E LD_PRELOAD=./x.so ls'),
        ('strace', 'strace --output=f ls'), ('strace -f', 'strace -f -o f ls'), ('ltrace', 'ltrace -o f ls'),
        ('ltrace', 'ltrace -F ./conf ls'), ('ltrace', 'ltrace -Sof ls'),
        ('perf', 'perf record -o f ls'), ('perf stat', 'perf stat -o f ls'), ('valgrind', 'valgrind --log-file=f ls'),
        ('valgrind', 'valgrind --xml-file=f ls'),
        ('time', 'time -o f ls'), ('logsave', 'logsave f ls'), ('logsave', 'logsave -a f ls'),
        ('fakeroot', 'fakeroot -s f ls'),
        ('fakeroot', 'fakeroot -l ./x.so ls'), ('xvfb-run', 'xvfb-run -e f ls'),
        ('xvfb-run', "xvfb-run -s '-logfile f' ls"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrapper_that_writes_a_file_is_asked_about(rule, command):
    """Attack: a rule approves `strace`, and `strace -o ~/.bashrc ls` writes."""
    assert decision(command, *unasked(rule, 'ls')) == 'ask'


@pytest.mark.parametrize(
    ('rule', 'command'),
    [
        ('strace', 'strace -f -e trace=openat ls'), ('strace', 'strace -eopen -s100 ls'),
        ('strace', 'strace -Popen ls'), ('strace -o f', 'strace -o f ls'),
        ('strace -o f ls', 'strace -o f ls -o'), ('ltrace', 'ltrace -S ls'), ('logsave f', 'logsave f ls'),
        ('perf', 'perf stat ls'), ('xvfb-run', "xvfb-run -a -s '-screen 0 1024x768x24' ls"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrapper_that_writes_nothing_or_that_the_rule_names_is_not(rule, command):
    assert decision(command, *unasked(rule, 'ls')) == 'allow'


def test_a_rule_that_names_what_a_wrapper_runs_covers_no_more_of_it():
    assert decision('command read x', *unasked('command read')) == 'allow'
    assert decision('command read PATH', *unasked('command read')) == 'ask'
    assert decision("timeout 5 sed 's/a/b/e' f", *unasked('timeout 5 sed')) == 'ask'
    assert decision('hatch run test -v', *unasked('hatch run test')) == 'allow'
    assert decision('hatch run test -v', *blocked('test'), *unasked('hatch run test')) == 'block'
    assert decision('poetry run test -f a', *unasked('poetry run')) == 'ask'
    assert decision('poetry run test -f a', default=OPEN) == 'allow'


def test_a_variable_in_front_of_nothing_or_without_a_name_is_one():
    assert decision('time PATH=.; ls', *unasked('ls', 'time')) == 'ask'
    assert decision('env =x ls', *unasked('ls', 'env')) == 'ask'


def test_a_word_that_is_not_known_asks_where_the_default_asks_nobody():
    assert decision('nobody-knows-it a', default=OPEN) == 'allow'
    assert decision('nobody-knows-it $a', default=OPEN) == 'ask'


def test_a_rule_for_a_program_does_not_approve_what_it_runs():
    assert decision(r'find . -name x -exec rm {} \;', *unasked('find . -name')) == 'ask'
    assert decision(r'find rm -exec rm {} \;', *unasked('find rm')) == 'ask'
    assert decision('npx ls', *unasked('npx', 'ls')) == 'ask'
    assert decision('npx ls', *unasked('npx ls')) == 'allow'
    assert decision('uv run env test', *unasked('uv run')) == 'ask'
    assert decision('nice ' * 100 + 'ls', *unasked('ls')) == 'ask'


@table(
    'command', ['env LC_ALL=C -0', 'env LC_ALL=C - ls', 'env LC_ALL=C -- ls', 'time LC_ALL=C -p', 'env LC_ALL=C -i ls']
)
def test_a_wrapper_has_no_options_behind_a_variable(command):
    assert decision(command, *unasked('env', 'time', 'ls')) == 'ask'


@table('command', ['env rm -S', 'env rm -C"$a" -vS', 'env -u A rm --split-string x'])
def test_an_option_of_what_env_runs_is_none_of_env(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'block'


@table('command', ['timeout0 5 ls', 'env9 ls', 'Nice ls'])
def test_a_name_like_that_of_a_wrapper_is_another_program(command):
    assert decision(command, *unasked('ls')) == 'ask'


@table('command', ['./echo $x', 'xargs ./echo', 'sub/../ps "$x"', 'echo0 rm', 'ps2 $x', 'Echo rm'])
def test_a_name_like_that_of_a_harmless_program_vouches_for_nothing(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'


@table(
    'command',
    [
        'GIT x',
        'PYTHON -c x',
        'Find . -delete',
        'SED -i x f',
        'R -e x',
        'echo x | R',
        'git submodule foreach \'r""m v\'',
    ],
)
def test_what_runs_code_asks_where_the_default_asks_nobody(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'


@pytest.mark.parametrize(
    ('command', 'expected'),
    [
        ("kubectl exec p -- sh -c 'r\"\"m v'", 'block'), ('kubectl exec p -it -- rm v', 'block'),
        ('kubectl exec p rm v', 'block'), ('kubectl exec p -- ls', 'allow'),
    ],
)  # fmt: skip
def test_the_command_behind_two_dashes_is_that_of_the_container(command, expected):
    rule = {'pattern': 'kubectl exec', 'approval': False, 'arguments': 'any'}

    assert decision(command, *blocked('rm'), rule, *unasked('ls')) == expected


@table('command', ['mylang < evil', 'echo x | mylang', 'mylang <<< x', 'cat f | timeout 5 mylang'])
def test_a_program_that_is_not_listed_may_run_what_it_is_fed(command):
    trusting = {'pattern': 'mylang', 'approval': False, 'arguments': 'any'}

    assert decision(command, *unasked('mylang', 'echo', 'cat', 'timeout')) == 'ask'
    assert decision(command, trusting, *unasked('echo', 'cat', 'timeout')) == 'allow'
    assert decision('mylang', *unasked('mylang')) == 'allow'


@table('command', ['./cat -- $x', './cat -- "$x"', './cat a$x', '../ls -- $x', 'echo x | python3 -m code'])
def test_what_may_be_another_program_asks_where_the_default_asks_nobody(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'


@table('command', ['python3 -m timeit x', 'python -m timeit -s x', 'python3.11 -m pdb -c x a.py', 'python -m asyncio'])
def test_a_module_that_runs_code_asks_where_the_default_asks_nobody(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'

"""Every class of attack: behind a pre-approved reader, around a block, and through an option."""

from tests.tables import table

from . import attacks
from .parts import OPEN, blocked, judge, unasked

READERS = judge(*unasked(*attacks.READERS, 'git status'))
GUARDED = judge(
    *blocked('rm', 'git push', 'pip uninstall', 'kubectl delete', 'docker system prune --force'), default=OPEN
)
LIFTED = [(pattern, command) for pattern, commands in attacks.LIFTED.items() for command in commands]


@table('command', attacks.lines(attacks.TOUCHING))
def test_command_hidden_behind_a_reader_asks(command):
    explanation = READERS.explain(command)

    assert explanation.decision == 'ask'


@table('command', attacks.lines(attacks.BLOCKED))
def test_blocked_command_is_blocked_in_every_form(command):
    explanation = GUARDED.explain(command)

    assert explanation.decision == 'block'


@table('command', attacks.lines(attacks.HIDDEN))
def test_what_may_run_something_blocked_is_asked_about_where_nothing_else_is(command):
    explanation = GUARDED.explain(command)

    assert explanation.decision in ('ask', 'block')


@table(('pattern', 'command'), LIFTED)
def test_an_option_that_runs_or_writes_lifts_the_approval_of_its_program(pattern, command):
    explanation = judge(*unasked(pattern)).explain(command)

    assert explanation.decision == 'ask'


@table('command', ['git status', 'ls -la', 'echo a', 'cat f', 'grep a f', 'wc -l f'])
@table('char', [chr(code) for code in (*range(9), *range(11, 32), 127, 0xA0, 0xAD, 0x2028, 0xFEFF)])
@table('place', ['{char}{command}', '{command}{char}', '{command} {char}a'])
def test_invisible_character_asks(command, char, place):
    explanation = READERS.explain(place.format(command=command, char=char))

    assert explanation.decision == 'ask'
    assert 'character' in explanation.deciding.reason

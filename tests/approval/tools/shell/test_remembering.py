import tomllib
from pathlib import Path

from tests.tables import table

from .cases import lines
from .parts import blocked, judge, unasked

DATA = tomllib.loads(Path(__file__).with_name('remembered.toml').read_text())


@table(('command', 'words'), DATA['offered'].items())
def test_plain_command_offers_its_sub_command(command, words):
    assert judge().explain(command).remember == tuple(words.split())


@table(
    ('command', 'reason'),
    [(command, group['reason']) for group in DATA['nothing'] for command in lines(group['commands'])],
)
def test_command_that_is_not_plain_offers_nothing_to_remember(command, reason):
    assert judge().explain(command).remember is None, reason


def test_remembering_is_not_offered_for_allowed_or_blocked_commands():
    assert judge(*unasked('pytest')).explain('python -m pytest').remember is None
    assert judge(*unasked('git fetch')).explain('git fetch').remember is None
    assert judge(*blocked('git fetch')).explain('git fetch').remember is None

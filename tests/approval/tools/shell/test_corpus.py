"""The sample corpus meets its targets; `python -m tests.corpus.shell` prints the rows that differ."""

from tests.corpus.shell import ROWS, counts, decide, is_unsafe
from tests.tables import table


def test_nothing_unsafe_is_allowed_and_benign_commands_are():
    counted = counts()

    assert counted['basic', 'unsafe'] == 0
    assert counted['hard', 'unsafe'] <= 0.02 * counted['hard', 'rows']
    assert counted['benign', 'allowed'] >= 0.95 * counted['benign', 'rows']


@table('row', ROWS)
def test_every_row_is_decided_acceptably(row):
    decision = decide(row).decision

    assert not is_unsafe(row, decision)
    assert decision in row['acceptable']

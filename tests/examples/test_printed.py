"""Examples that ask nothing print what `printed/` has for each."""

from pathlib import Path

import pytest

PRINTED = Path(__file__).with_name('printed')
BEHAVIOURS = {
    'approval_audit': 'each change of the log is named with its line',
    'approval_groups': 'a group is one question with an answer for each call',
    'approval_memory': 'each way to remember asks as often as it should',
    'approval_no_framework': 'an approval, a denial and a block are results for the model',
    'approval_stop_resume': 'an approved call runs, and a call in a changed history does not',
    'approve_all': 'the refund is paid only if it is approved',
    'chat_reaction': 'each run gets its own reaction, or the end of its time',
    'external_loop': 'the model gets the same as with a handler, in more runs',
    'nested_agents': 'requests of every depth reach the outer handler with their lineage',
    'refund_bot': 'the amount says whether no one, one person or two leads must approve',
}


@pytest.mark.parametrize('name', [pytest.param(name, id=f'{name}: {what}') for name, what in BEHAVIOURS.items()])
def test_example_prints_what_it_shows(play, name):
    assert play(name) == (PRINTED / f'{name}.txt').read_text(encoding='utf-8').splitlines()


def test_every_printed_text_belongs_to_an_example():
    assert {file.stem for file in PRINTED.iterdir()} == set(BEHAVIOURS)

from typing import get_args

from tool_approval.inbox import MOVES, Settled, State


def test_every_state_has_its_moves_and_only_pending_has_any():
    assert set(MOVES) == set(get_args(State)) == {'pending', *get_args(Settled)}
    assert MOVES['pending'] == set(get_args(Settled))
    assert all(not MOVES[state] for state in get_args(Settled))

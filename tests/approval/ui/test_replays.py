from tool_approval.ui import replays
from tool_approval.ui.replays import Replays


def test_a_signature_is_new_once_for_ten_minutes():
    seconds = 0.0
    seen = Replays(lambda: seconds)

    assert (seen.is_new('a'), seen.is_new('a'), seen.is_new('b')) == (True, False, True)
    seconds = 599.9
    assert not seen.is_new('a')
    seconds = 600
    assert seen.is_new('a')


def test_when_there_are_too_many_none_is_new_until_some_are_old(monkeypatch):
    monkeypatch.setattr(replays, 'MOST', 2)
    seconds = 0.0
    seen = Replays(lambda: seconds)
    assert [seen.is_new(each) for each in 'abc'] == [True, True, False]

    seconds = 600

    assert seen.is_new('c')

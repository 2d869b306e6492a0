import os


def test_nothing_is_left_in_the_users_own_state_directory(play, monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))

    play('approval_memory')

    assert os.listdir(tmp_path) == []

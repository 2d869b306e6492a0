import os


def test_example_writes_nothing_into_the_state_directory(play, monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))

    play('approval_memory')

    assert os.listdir(tmp_path) == []

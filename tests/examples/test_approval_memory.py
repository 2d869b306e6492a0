import os


def test_each_way_to_remember_asks_as_often_as_it_should(play):
    assert play('approval_memory') == [
        'Once, then for the session:',
        'monday   tmp/a      asked     tmp/a is gone',
        'monday   tmp/a      asked     tmp/a is gone',
        'monday   tmp/a      not asked tmp/a is gone',
        'monday   tmp/b      asked     not now',
        'tuesday  tmp/a      asked     not now',
        'The whole folder:',
        'monday   tmp/a      asked     tmp/a is gone',
        'monday   tmp/b      not asked tmp/b is gone',
        'monday   letters/a  asked     not now',
        'Always, until it is revoked:',
        'monday   tmp/a      asked     tmp/a is gone',
        'tuesday  tmp/a      not asked tmp/a is gone',
        'revoking: Delete tmp/a',
        'tuesday  tmp/a      asked     not now',
    ]


def test_nothing_is_left_in_the_users_own_state_directory(play, monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))

    play('approval_memory')

    assert os.listdir(tmp_path) == []

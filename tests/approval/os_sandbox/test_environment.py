"""The variables a confined command gets."""

import pytest
from tool_approval.os_sandbox import OSProfile, OSSandboxError, passed_on


def test_variables_that_the_profile_does_not_name_are_removed():
    profile = OSProfile(environment=frozenset({'HOME', 'LANG'}))

    assert passed_on(profile, {'HOME': '/home/a', 'SECRET_TOKEN': 'x'}) == {
        'HOME': '/home/a',
        'PATH': '/usr/local/bin:/usr/bin:/bin',
    }


@pytest.mark.parametrize(
    ('given', 'kept'),
    [
        ('/usr/bin:.', '/usr/bin'),
        (':/usr/bin:', '/usr/bin'),
        ('bin:/opt/bin:../x:/usr/bin', '/opt/bin:/usr/bin'),
        ('.', '/usr/local/bin:/usr/bin:/bin'),
        ('', '/usr/local/bin:/usr/bin:/bin'),
    ],
)
def test_relative_parts_of_the_search_path_stay_out(given, kept):
    profile = OSProfile(environment=frozenset({'PATH'}))

    assert passed_on(profile, {'PATH': given}) == {'PATH': kept}


def test_a_profile_sets_variables_of_its_own():
    profile = OSProfile(
        environment=frozenset({'HOME'}), variables=(('PATH', '.:/opt/bin'), ('GOCACHE', '/c'), ('HOME', '/h'))
    )
    narrow = profile.intersect(OSProfile(variables=(('GOCACHE', '/c'), ('HOME', '/other'))))

    assert passed_on(profile, {'HOME': '/home/a', 'PATH': '/usr/bin'}) == {
        'PATH': '/opt/bin',
        'HOME': '/h',
        'GOCACHE': '/c',
    }
    assert narrow.variables == (('GOCACHE', '/c'),)


def test_a_variable_has_a_name():
    with pytest.raises(OSSandboxError, match='cannot be the name of an environment variable'):
        OSProfile(variables=(('A=B', 'x'),))

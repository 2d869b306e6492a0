"""What one command may be given beyond its profile."""

import pytest
from tool_approval.os_sandbox import Access, ExtraAccess, OSProfile, OSSandboxError, Root

from .house import House

WORKSPACE = OSProfile(
    roots=(
        Root(path='/w', access=Access.WRITE),
        Root(path='/w/.venv', access=Access.READ),
        Root(path='/w/.venv/secret', access=Access.NONE),
        Root(path='/lib', access=Access.READ),
        Root(path='/texts', access=Access.READ, suffixes=frozenset({'.txt'})),
    ),
    hidden=('/w/.env', '/w/.venv/token'),
    protected=('/w/.git', '/w/.venv/pyvenv.cfg', '/lib/control'),
)


def test_the_network_and_listed_folders_are_opened():
    wider = WORKSPACE.with_access(ExtraAccess(network=True, writes=('/w/.venv',)))

    assert wider.network
    assert [wider.access(f'/w/.venv/{name}') for name in ('lib', 'pyvenv.cfg', 'token', 'secret/a')] == [
        Access.WRITE,
        Access.READ,
        Access.NONE,
        Access.NONE,
    ]


@pytest.mark.parametrize(
    'path', ['/w/.git', '/w/.git/hooks', '/w/.env', '/w/.venv/secret', '/lib/control', '/texts', '/elsewhere', '/']
)
def test_what_is_hidden_blocked_or_a_control_file_is_never_opened(path: str):
    extra = ExtraAccess(git=('/w/.git',), writes=(path,))

    assert WORKSPACE.with_access(extra) == WORKSPACE
    assert extra.beyond(WORKSPACE).writes == ()


def test_wanted_access_without_the_profile_is_what_the_profile_lacks():
    wanted = ExtraAccess(network=True, git=('/w/.git', '/w/sub/.git'), writes=('/w/.venv', '/w'))

    lacking = wanted.beyond(WORKSPACE)

    # The profile protects only the first.
    assert lacking == ExtraAccess(network=True, git=('/w/.git',), writes=('/w/.venv',))
    assert not wanted.beyond(OSProfile(network=True, roots=(Root(path='/w', access=Access.WRITE),)))


def test_extra_access_is_described_in_words_and_bound_as_json():
    extra = ExtraAccess(network=True, git=('/w/.git', '/v/.git'), writes=('/w/.venv',))

    assert extra.describe('/w') == (
        "network (every host and this machine's own services; the command can send all it can read)",
        'writes to /v/.git; can change or delete history',
        'writes to .git; can change or delete history',
        'writes to .venv',
    )
    assert extra.describe('/w', brief=True)[1:] == ('writes to /v/.git', 'writes to .git', 'writes to .venv')
    assert ExtraAccess(git=('/w/.git',)).describe() == ('writes to /w/.git; can change or delete history',)
    assert extra.as_json() == {'network': True, 'git': ['/v/.git', '/w/.git'], 'writes': ['/w/.venv']}
    assert ExtraAccess().as_json() == {}


def test_files_are_described_without_git_unless_it_is_granted_too():
    extra = ExtraAccess(files=('/w', '/w/closed'), reads=('/w/closed', '/w/seen'))

    assert extra.describe('/w') == (
        'reads files in seen',
        'writes to files in this directory (not .git)',
        'reads and writes files in closed (not .git)',
    )
    both = ExtraAccess(files=('/w', '/v'), git=('/w/.git',))
    assert both.describe('/w') == (
        'writes to files in /v',
        'writes to .git and files here; can change or delete history',
    )
    assert both.describe('/w', brief=True)[1] == 'writes to .git and files here'
    assert ExtraAccess.of_json(extra.as_json()) == extra
    assert extra.names == {'write'}


def test_no_access_is_false_and_order_does_not_matter():
    assert not ExtraAccess()
    assert ExtraAccess(git=('/b', '/a', '/b')) == ExtraAccess(git=('/a', '/b'))


@pytest.mark.parametrize('field', ['git', 'writes', 'files', 'reads'])
def test_a_path_that_could_mean_several_places_is_refused(field: str):
    with pytest.raises(OSSandboxError, match='absolute and normalised'):
        ExtraAccess(**{field: ('w',)})  # pyright: ignore[reportArgumentType]


def test_a_backend_confines_under_the_wider_profile(house: House):
    environment = house.work / '.venv'
    environment.mkdir()
    (environment / 'token').write_text('secret')
    house.own()
    profile = house.profile(
        roots=(Root(path=str(environment), access=Access.READ),), hidden=(str(environment / 'token'),)
    )
    script = 'echo new > .venv/made; cat .venv/token; test -e .venv/made'

    before = house.run(script, profile=profile)
    after = house.run(script, profile=profile.with_access(ExtraAccess(writes=(str(environment),))))

    assert (before.returncode, after.returncode) == (1, 0)
    assert 'secret' not in before.stdout + after.stdout
    assert (environment / 'made').read_text() == 'new\n'

"""What a profile may say, and what it means."""

from dataclasses import replace

import pytest
from tool_approval.os_sandbox import Access, OSProfile, OSSandboxError, Root


def profile(*roots: tuple[str, Access], **fields) -> OSProfile:
    return OSProfile(roots=tuple(Root(path=path, access=access) for path, access in roots), **fields)


@pytest.mark.parametrize('path', ['', 'a', './a', '/a/', '//a', '/a/../b', '/a\0b', '/a//b'])
def test_a_path_that_could_mean_several_places_is_refused(path: str):
    with pytest.raises(OSSandboxError, match='absolute and normalised'):
        profile((path, Access.READ))
    with pytest.raises(OSSandboxError, match='absolute and normalised'):
        OSProfile(hidden=(path,))


@pytest.mark.parametrize('name', ['', 'A=B', 'A\0'])
def test_invalid_name_of_a_variable_is_refused(name: str):
    with pytest.raises(OSSandboxError, match='environment variable'):
        OSProfile(environment=frozenset({name}))


def test_the_longest_root_decides():
    nested = profile(('/w', Access.WRITE), ('/w/a', Access.READ), ('/w/a/b', Access.WRITE), ('/w/a/b/c', Access.NONE))

    assert [nested.access(path) for path in ('/', '/w', '/wx', '/w/a/x', '/w/ab', '/w/a/b/x', '/w/a/b/c/d')] == [
        Access.NONE,
        Access.WRITE,
        Access.NONE,
        Access.READ,
        Access.WRITE,
        Access.WRITE,
        Access.NONE,
    ]


def test_two_roots_with_one_path_grant_only_what_both_grant():
    twice = OSProfile(
        roots=(
            Root(path='/w', access=Access.WRITE, suffixes=frozenset({'.a', '.b'})),
            Root(path='/w', access=Access.READ, suffixes=frozenset({'.b'})),
        )
    )

    assert twice.roots == (Root(path='/w', access=Access.READ, suffixes=frozenset({'.b'})),)
    assert (twice.readable, twice.writable) == (('/w',), ())


def test_denied_path_stays_denied_below_a_longer_root():
    denied = profile(('/', Access.WRITE), ('/a/b', Access.WRITE), hidden=('/a',), protected=('/c',))

    assert [denied.access(path) for path in ('/a/b', '/a', '/c', '/c/d', '/d')] == [
        Access.NONE,
        Access.NONE,
        Access.READ,
        Access.READ,
        Access.WRITE,
    ]


def test_an_intersection_closes_what_only_one_opens():
    one = profile(('/w', Access.WRITE), network=True)
    other = profile(('/w/a', Access.READ), ('/x', Access.WRITE), network=True)

    both = one.intersect(replace(other, held=('/w/l', '/w/k')))

    assert both.held == ('/w/k', '/w/l')
    assert (both.access('/w'), both.access('/w/a'), both.access('/x'), both.network) == (0, 1, 0, True)

"""The profile that follows from the tools' configuration."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tool_approval.os_sandbox import Access, OSProfile, Root, derive_os_sandbox_profile, system_profile

from tool_approval import ApprovalConfigError


@dataclass
class Paths:
    root: str | Path
    mode: str = 'rw'
    suffixes: Collection[str] | None = None
    write_approval: bool = True
    read_approval: bool = False


@dataclass
class Sandbox:
    paths: dict[str, Paths] = field(default_factory=dict)


@dataclass
class Shell:
    network: bool = False


NOTHING = OSProfile()


def test_modes_become_roots(tmp_path: Path):
    (tmp_path / 'real').mkdir()
    (tmp_path / 'link').symlink_to('real')
    sandbox = Sandbox({'a': Paths('./link'), 'b': Paths(tmp_path / 'b', 'ro')})

    profile = derive_os_sandbox_profile(sandbox, Shell(network=True), base=NOTHING, directory=tmp_path)

    assert profile.roots == (
        Root(path=f'{tmp_path}/b', access=Access.READ),
        Root(path=f'{tmp_path}/real', access=Access.WRITE),
    )
    assert profile.protected == (f'{tmp_path}/real/.git',)
    assert profile.network


def test_the_system_can_be_read(tmp_path: Path):
    profile = derive_os_sandbox_profile(Sandbox(), Shell())

    assert profile == system_profile()
    assert profile.access('/usr/bin') is Access.READ
    assert profile.access('/etc/shadow') is Access.NONE
    assert profile.writable == ()


def test_a_base_that_could_be_written_is_read_only():
    base = OSProfile(roots=(Root(path='/usr', access=Access.WRITE),))

    assert derive_os_sandbox_profile(Sandbox(), Shell(), base=base).writable == ()


def test_more_of_the_system_can_be_named(tmp_path: Path):
    assert system_profile([str(tmp_path), '/does/not/exist']).access(str(tmp_path)) is Access.READ
    assert system_profile(platform='darwin').access('/usr/bin') is Access.READ


def test_a_command_that_nobody_approved_gets_only_what_needs_no_approval(tmp_path: Path):
    sandbox = Sandbox(
        {
            'asked': Paths('/p/asked'),
            'free': Paths('/p/free', write_approval=False),
            'secret': Paths('/p/secret', write_approval=False, read_approval=True),
        }
    )

    profile = derive_os_sandbox_profile(sandbox, Shell(), base=NOTHING, approved=False)

    assert (profile.readable, profile.writable) == (('/p/asked', '/p/free'), ('/p/free',))


def test_an_explicit_profile_only_narrows():
    explicit = OSProfile(roots=(Root(path='/p', access=Access.READ), Root(path='/q', access=Access.WRITE)))
    sandbox = Sandbox({'a': Paths('/p/a'), 'b': Paths('/b')})

    profile = derive_os_sandbox_profile(sandbox, Shell(network=True), explicit, base=NOTHING)

    assert (profile.access('/p/a'), profile.access('/b'), profile.access('/q')) == (1, 0, 0)
    assert not profile.network
    assert profile.protected == ()


@pytest.mark.parametrize('suffixes', [[], (), ['.txt']])
def test_suffixes_are_kept_and_none_at_all_opens_nothing(suffixes: list[str]):
    profile = derive_os_sandbox_profile(Sandbox({'a': Paths('/p', suffixes=suffixes)}), Shell(), base=NOTHING)

    assert profile.roots[0].suffixes == frozenset(suffixes)
    assert profile.access('/p/x.py') is Access.NONE
    assert profile.access('/p/x.txt') == (Access.WRITE if suffixes else Access.NONE)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ApprovalConfigError, match=r'sandbox\.paths\.a\.mode'):
        derive_os_sandbox_profile(Sandbox({'a': Paths('/p', mode='rwx')}), Shell())


def test_only_true_opens_the_network():
    assert not derive_os_sandbox_profile(Sandbox(), Shell(network='no'), base=NOTHING).network  # pyright: ignore


def test_control_files_are_protected_by_the_name_they_have_and_files_have_none_below(tmp_path: Path):
    (tmp_path / 'one.txt').touch()
    sandbox = Sandbox({'a': Paths(tmp_path / 'one.txt')})

    profile = derive_os_sandbox_profile(
        sandbox,
        Shell(),
        base=NOTHING,
        directory=tmp_path,
        protected=['policy.yaml'],
        hidden=[Path('../keys')],
        held=['link'],
    )

    assert profile.protected == (f'{tmp_path}/policy.yaml',)
    assert profile.hidden == (f'{tmp_path.parent}/keys',)
    assert profile.held == (f'{tmp_path}/link',)

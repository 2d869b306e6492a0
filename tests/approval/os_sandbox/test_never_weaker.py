"""For random configurations, what a backend grants is never more than what the tools' configuration does."""

import os
import random
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest
from tool_approval.os_sandbox import (
    Access,
    BubblewrapBackend,
    ExtraAccess,
    OSProfile,
    Root,
    SeatbeltBackend,
    derive_os_sandbox_profile,
)

from .views import NONE, READ, WRITE, BubblewrapView, SeatbeltView, covers

COUNT = 2000
NAMES = [
    'a',
    "it's",
    'a"b',
    '(par)',
    'new\nline',
    'ünï\u202e',
    ' s p ',
    '$HOME',
    '-rf',
    '.git',
    ')) (allow default',
    '#"',
]
FILES = ['x.txt', 'y.py', '.txt', 'z.txt\n', 'UP.TXT', 'we"ird(.txt']
BASE = OSProfile(roots=(Root(path='/usr', access=Access.READ),))


@dataclass
class Paths:
    root: str
    mode: str
    suffixes: list[str] | None
    write_approval: bool
    read_approval: bool


@dataclass
class Sandbox:
    paths: dict[str, Paths]


@dataclass
class Shell:
    network: bool


@pytest.fixture(scope='module')
def tree(tmp_path_factory: pytest.TempPathFactory):
    """A tree with every sort of name, its folders, and every path worth asking about."""
    top = tmp_path_factory.mktemp('tree').resolve()
    chance = random.Random(7)
    folders = [top]
    for depth in range(3):
        for parent in [each for each in folders if len(each.relative_to(top).parts) == depth]:
            for name in chance.sample(NAMES, 4 if depth < 2 else 2):
                (parent / name).mkdir()
                folders.append(parent / name)
    for folder in folders:
        for name in chance.sample(FILES, 2):
            (folder / name).touch()
        if chance.random() < 0.3:
            (folder / 'link').symlink_to(chance.choice([*folders, Path('nowhere'), Path('../a')]))
    asked = [each for each in top.rglob('*') if not each.is_symlink()]
    asked += [folder / 'absent.txt' for folder in folders] + [
        Path('/etc/passwd'),
        Path('/usr/bin'),
        top.parent,
        Path('/'),
    ]
    return top, folders, [str(each) for each in asked]


def configuration(chance: random.Random, folders: list[Path]):
    """What a user could write, good sense or not."""
    paths = {}
    for number in range(chance.randint(0, 5)):
        root = chance.choice(folders)
        root = root / chance.choice(['', '', '', 'absent', 'link', '../a', 'x.txt', '.git'])
        paths[str(number)] = Paths(
            root=str(root),
            mode=chance.choice(['ro', 'rw', 'rw']),
            suffixes=chance.choice([None, None, None, [], ['.txt'], ['.py', '.txt'], ['.t"x', 'txt', '.*']]),
            write_approval=chance.random() < 0.5,
            read_approval=chance.random() < 0.3,
        )
    explicit = None
    if chance.random() < 0.3:
        roots = (
            Root(
                path=os.path.realpath(chance.choice(folders)),
                access=chance.choice(list(Access)),
                suffixes=chance.choice([None, None, frozenset({'.txt'})]),
            )
            for _ in range(3)
        )
        explicit = OSProfile(roots=tuple(roots), network=chance.random() < 0.5)
    denied = [
        str(chance.choice(folders) / chance.choice(['', 'link', 'x.txt', 'absent/deep', '.git'])) for _ in range(4)
    ]
    return Sandbox(paths), Shell(chance.random() < 0.5), explicit, denied[: chance.randint(0, 2)], denied[3:]


def granted(roots: list[tuple[str, Paths]], explicit: OSProfile | None, path: str, *, approved: bool) -> int:
    """What the file tools would allow, written down a second time."""
    found = [(root, each) for root, each in roots if covers(root, path)]
    longest = max((len(root) for root, _ in found), default=0)
    access = WRITE if found else NONE
    for root, each in found:
        if len(root) == longest:
            mine = WRITE if each.mode == 'rw' else READ
            if each.suffixes is not None and PurePosixPath(path).suffix not in each.suffixes:
                mine = NONE
            if not approved:
                mine = NONE if each.read_approval else min(mine, READ) if each.write_approval else mine
            access = min(access, mine)
    return access if explicit is None else min(access, explicit.access(path))


def is_base(path: str) -> bool:
    # macOS programs do not start without a look at the names in `/`.
    return covers('/usr', path) or path == '/'


def check(seed: int, tree, view_of, held) -> tuple[int, int]:
    """One configuration; how many paths the tools and the backend open."""
    top, folders, asked = tree
    chance = random.Random(seed)
    sandbox, shell, explicit, protected, hidden = configuration(chance, folders)
    approved = chance.random() < 0.7
    profile = derive_os_sandbox_profile(
        sandbox, shell, explicit, base=BASE, approved=approved, protected=protected, hidden=hidden
    )
    view = view_of(profile, str(top))
    real_protected = [os.path.realpath(each) for each in protected]
    real_hidden = [os.path.realpath(each) for each in hidden]
    roots = [(os.path.realpath(each.root), each) for each in sandbox.paths.values()]
    control = [*real_protected, *(f'{root}/.git' for root in profile.writable)]
    wide = narrow = 0
    for path in chance.sample(asked, 40):
        limit = granted(roots, explicit, path, approved=approved)
        if any(covers(each, path) for each in control):
            limit = min(limit, READ)
        if any(covers(each, path) for each in real_hidden):
            limit = NONE
        limit = max(limit, READ) if is_base(path) else limit
        found = view.access(path)
        assert found <= limit, (seed, path, found, limit)
        wide, narrow = wide + (limit > NONE), narrow + (found > NONE)
    for closed in [*real_protected, *real_hidden]:
        held(view, closed, seed)
    for each in profile.roots:
        if view.access(each.path) < WRITE:
            held(view, each.path, seed)
    return wide, narrow


def bubblewrap_holds(view: BubblewrapView, path: str, seed: int) -> None:
    """Nothing on the way to a path can be renamed, deleted or made."""
    while path != '/':
        if view.access(os.path.dirname(path)) == WRITE:
            assert path in view.mount_points, (seed, path)
        path = os.path.dirname(path)


def seatbelt_holds(view: SeatbeltView, path: str, seed: int) -> None:
    while path != '/':
        assert not view.allows('file-write-unlink', path), (seed, path)
        assert not view.allows('file-write-create', path), (seed, path)
        path = os.path.dirname(path)


@pytest.mark.thorough
@pytest.mark.untraced
def test_bubblewrap_is_never_weaker(tree):
    backend = BubblewrapBackend(bwrap='/bwrap', bash='/bash', machine='x86_64')
    opened = [
        check(seed, tree, lambda profile, cwd: bubblewrap_view(backend, profile, cwd), bubblewrap_holds)
        for seed in range(COUNT)
    ]

    # And it grants something: most of what the tools do, but for endings and frozen folders.
    assert sum(narrow for _, narrow in opened) > sum(wide for wide, _ in opened) / 2


def bubblewrap_view(backend: BubblewrapBackend, profile: OSProfile, cwd: str) -> BubblewrapView:
    view = BubblewrapView.of(backend.wrap(['true'], profile, cwd), '/bwrap')
    assert view.command == ['true']
    assert view.has('--share-net') == profile.network
    for option in (['--unshare-all'], ['--unshare-user'], ['--cap-drop', 'ALL'], ['--new-session'], ['--seccomp', '9']):
        assert view.has(*option)
    return view


@pytest.mark.thorough
@pytest.mark.untraced
def test_seatbelt_is_never_weaker(tree):
    backend = SeatbeltBackend()
    opened = [
        check(seed, tree, lambda profile, cwd: seatbelt_view(backend, profile, cwd), seatbelt_holds)
        for seed in range(COUNT)
    ]

    assert sum(narrow for _, narrow in opened) > sum(wide for wide, _ in opened) * 0.8


def seatbelt_view(backend: SeatbeltBackend, profile: OSProfile, cwd: str) -> SeatbeltView:
    view = SeatbeltView.of(backend.wrap(['/usr/bin/true'], profile, cwd))
    assert view.command[-1] == '/usr/bin/true'
    assert view.allows('network-outbound') == profile.network
    return view


@pytest.mark.untraced
def test_an_intersection_grants_no_more_than_either(tree):
    _, folders, asked = tree
    for seed in range(COUNT):
        chance = random.Random(seed)
        one, other = (any_profile(chance, folders) for _ in range(2))

        both = one.intersect(other)

        for path in chance.sample(asked, 30):
            assert both.access(path) == min(one.access(path), other.access(path)), (seed, path)
        assert both.network == (one.network and other.network)
        assert both.environment == one.environment & other.environment
        assert both == other.intersect(one)


@pytest.mark.untraced
def test_extra_access_grants_no_more_than_the_profile_and_what_it_lists(tree):
    _, folders, asked = tree
    opened = 0
    for seed in range(COUNT):
        chance = random.Random(seed)
        profile = any_profile(chance, folders)
        extra = any_access(chance, [*folders, *map(Path, profile.readable * 50)])
        below = [path for path in asked if any(covers(each, path) for each in extra.writes)]

        wider = profile.with_access(extra)

        for path in [*chance.sample(asked, 30), *chance.sample(below, min(30, len(below)))]:
            is_listed = any(covers(each, path) for each in extra.writes)
            is_closed = profile.access(path) is Access.NONE or any(covers(each, path) for each in profile.protected)
            limit = Access.WRITE if is_listed and not is_closed else profile.access(path)
            assert profile.access(path) <= wider.access(path) <= limit, (seed, path)
            opened += wider.access(path) > profile.access(path)
        assert wider.network == (profile.network or extra.network)
        assert replace(wider, roots=(), network=False) == replace(profile, roots=(), network=False)
        assert wider.with_access(extra) == wider
        assert not extra.beyond(wider).network
        assert extra.beyond(wider).writes == ()
    assert opened > COUNT


def any_access(chance: random.Random, folders: list[Path]) -> ExtraAccess:
    def some(most: int) -> tuple[str, ...]:
        return tuple(str(chance.choice(folders)) for _ in range(chance.randint(0, most)))

    return ExtraAccess(network=chance.random() < 0.5, git=some(3), writes=some(6))


def any_profile(chance: random.Random, folders: list[Path]) -> OSProfile:
    def some(most: int) -> list[str]:
        return [str(chance.choice(folders)) for _ in range(chance.randint(0, most))]

    return OSProfile(
        roots=tuple(
            Root(
                path=path,
                access=chance.choice(list(Access)),
                suffixes=chance.choice([None, None, frozenset({'.txt'}), frozenset({'.txt', '.py'}), frozenset[str]()]),
            )
            for path in some(5)
        ),
        hidden=tuple(some(1)),
        protected=tuple(some(2)),
        network=chance.random() < 0.5,
        environment=frozenset(chance.sample(['A', 'B', 'C'], 2)),
    )

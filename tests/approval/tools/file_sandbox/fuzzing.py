"""Makes hostile worlds, paths and calls, and finds out from the inodes what a call has read and changed.

Every file has a content of its own, so what is told says which inode was read. Where a file lies is found by walking
all directories from the top without following a link, never from the path of the call.
"""

import os
import random
import re
import socket
import stat
import unicodedata
from dataclasses import dataclass, field

from tool_approval.tools.file_sandbox import FileSandbox, FileTools

from tool_approval import ApprovalContext, ApprovalError

FOLDERS = ['notes', 'notes/sub', 'cache', 'cache/inner', 'cache/inner/deep', 'ref', 'priv', 'plain', '.', '../far']
"""What may be a root, relative to the working directory."""
PROTECTED = 'cache/policy.dat'
NAMES = [
    'a.txt', 'b.md', 'c.dat', '.txt', 'a.TXT', 'a.txt.', 'a.txt ', '-rf.txt', '--help.md', '~', 'notes:sub', 'é.txt',
    'e\u0301.txt', 'ﬁ.txt', 'ａ.txt',
    'а.txt', 'A.txt', '.git', '.GIT', 'git~1', '.gitx', 'approvals.yaml', 'Approvals.YAML', 'x' * 250 + '.txt',
    'a b.txt', "a'b.txt", 'a\nb.txt', 'x.tar.gz',
    '...', 'ß.txt', 'con.txt', 'a\u202eb.txt', 'Notes', 'CACHE', 'notes.', '*.txt', '$HOME.txt', '%2e%2e', 'a\\b.txt',
    '.approvals',
]  # fmt: skip
SUFFIXES = [None, None, ['.txt'], ['.txt', '.md'], ['.md', '.tar.gz']]
OPERATIONS = ['read_file', 'list_files', 'write_file', 'edit_file', 'make_directory', 'delete', 'move', 'copy']
_TOKEN = re.compile(r'<<\d+>>')


class World:
    """Directories, files and what is no file, with roots over some of them."""

    def __init__(self, seed, top, *, aims=True):
        """With `aims`, another process often writes to the very files of a call between the decision and the call."""
        self.random = random.Random(seed)
        # Of its own, so that a seed makes the same world with it and without.
        self.aim = random.Random(seed) if aims else None
        self.top = top
        self.ws = top / 'ws'
        self._tokens = 0
        self.all = []
        for folder in (
            'ws/notes/sub',
            'ws/cache/inner/deep',
            'ws/ref',
            'ws/priv',
            'ws/plain',
            'far',
            'outside/dir',
            'home',
        ):
            (top / folder).mkdir(parents=True)
        (self.ws / PROTECTED).write_text(self.token())
        for place in ('outside', 'outside/dir', 'home'):
            (top / place / f'OUTSIDE{self.random.randrange(10**9)}.txt').write_text(self.token())
        for _ in range(self.random.randint(15, 30)):
            self.look()
            self.add()
        self.look()
        chosen = [folder for folder in FOLDERS if self.random.random() < (0.2 if folder == '.' else 0.6)] or ['cache']
        self.config = {'paths': {f'r{number}': self._root(folder) for number, folder in enumerate(chosen)}}
        self.tools = FileTools(FileSandbox(self.config, self.ws, protected=[PROTECTED]))

    def token(self):
        """A content that nothing else has."""
        self._tokens += 1
        return f'<<{self._tokens}>>\n'

    def _root(self, folder):
        choose = self.random.choice
        return {
            'root': choose([folder, folder, str(self.ws / folder), f'./{folder}/']),
            'mode': choose(['rw', 'rw', 'ro']),
            'suffixes': choose(SUFFIXES),
            'write_approval': choose([True, False, False]),
            'read_approval': choose([True, False, False, False]),
        }

    def place_of(self, shown):
        """Where a file is that a decision calls `root:path`."""
        root, _, path = shown.partition(':')
        return self.top.__class__(os.path.normpath(self.ws / self.config['paths'][root]['root'] / path))

    def look(self):
        """See what there is to choose from."""
        self.all = walked(self.top)

    def folders(self):
        """All directories, as they lie."""
        return [self.top, *(path for path in self.all if path.is_dir() and not path.is_symlink())]

    def add(self):
        """Put one more thing somewhere. What cannot be put there is left out."""
        choose = self.random.choice
        path = choose(self.folders()) / choose(NAMES)
        others = [each for each in self.all if each != path]
        try:
            match self.random.randint(0, 11):
                case 0 | 1 | 2 | 3:
                    with open(path, 'x') as file:
                        file.write(self.token())
                case 4:
                    path.mkdir()
                case 5 | 6 | 7:
                    os.symlink(self._link(path, choose(others)), path)
                case 8:
                    os.link(choose(others), path, follow_symlinks=False)
                case 9:
                    os.mkfifo(path)
                case 10:
                    with socket.socket(socket.AF_UNIX) as server:
                        server.bind(str(path))
                case _:
                    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError:
            pass

    def _link(self, path, other):
        return self.random.choice(
            [
                str(other), os.path.relpath(other, path.parent), f'{os.path.relpath(other, path.parent)}/', path.name,
                '.', '..', '/', '../..', str(self.top / 'outside'),
                f'/proc/self/root{other}', '/proc/self/cwd', f'{other}/../{other.name}', 'missing/../..',
                f'{os.path.relpath(self.top, path.parent)}/outside/new.txt',
                f'{os.path.relpath(self.ws, path.parent)}/cache/new.dat', '/etc/passwd', 'a.txt', f'./{other.name}',
            ]
        )  # fmt: skip

    def swap(self):
        """What another process may do between the decision and the call."""
        choose = self.random.choice
        paths = [path for path in self.all if self.ws in path.parents]
        one, other = choose(paths), choose(paths)
        aside = self.top / 'outside' / f'aside{self._tokens}'
        try:
            match self.random.randint(0, 5):
                case 0:
                    one.rename(aside)
                    os.symlink(choose([aside, self.top / 'outside', other]), one)
                case 1:
                    one.rename(aside)
                    other.rename(one)
                case 2:
                    one.rename(other)
                case 3:
                    one.unlink()
                    os.link(other, one, follow_symlinks=False)
                case 4 if one.is_file() and not one.is_symlink():
                    one.write_text(self.token())
                case _:
                    self.add()
        except OSError:
            pass

    def write(self, place):
        """Another process gives a file a content that nobody was shown: the file itself, or another of its name."""
        aside = self.top / 'outside' / f'written{self._tokens}'
        try:
            if self.aim.random() < 0.5:
                aside.write_text(self.token())
                aside.rename(place)
            elif place.is_file() and not place.is_symlink():
                place.write_text(self.token())
        except OSError:
            aside.unlink(missing_ok=True)

    def path(self):
        """A path as a model may give it: to something that is there or not, written in some way."""
        choose = self.random.choice
        tops = {self.top.__class__(os.path.normpath(self.ws / each['root'])) for each in self.config['paths'].values()}
        inside = [path for path in self.all if tops & {path, *path.parents}]
        near = choose([self.all, inside, inside, inside, inside, inside]) or self.all
        place = choose(near)
        if self.random.random() < 0.35:
            place = choose([path.parent for path in near]) / choose([*NAMES, f'new{self._tokens}.txt', 'new.md'])
        if place.is_symlink() and place.is_dir() and self.random.random() < 0.6:
            place = place / choose([*sorted(os.listdir(place))[:20], 'new.txt'])
        if self.random.random() < 0.08:
            place = place / choose(NAMES)
        text = choose([os.path.relpath(place, self.ws), os.path.relpath(place, self.ws), str(place)])
        for _ in range(choose([0, 0, 0, 0, 0, 0, 1, 1, 2, 3])):
            text = self._bent(text)
        return text

    def _bent(self, text):
        choose = self.random.choice
        parts = text.split('/')
        at = self.random.randrange(len(parts))
        part = parts[at]
        within = [choose(self.all).name, 'missing', 'notes', 'a.txt', '.', 'sub']
        match self.random.randint(0, 10):
            case 0:
                parts.insert(at, choose(['.', '', '..']))
            case 1:
                parts[at:at] = [choose(within), '..']
            case 2:
                parts[at] = choose(
                    [part.upper(), part.swapcase(), unicodedata.normalize('NFD', part),
                        unicodedata.normalize('NFC', part), f'{part}.', f'{part} ', f' {part}',
                     part.replace('a', 'ａ'), part.replace('a', 'а'), part.replace('.', '\u2024'), f'{part}\u200b',
                     part.replace('.', '%2e')]
                )  # fmt: skip
            case 3:
                return text + choose(
                    [
                        '/',
                        '/.',
                        '/..',
                        '//',
                        '\0',
                        '\n',
                        ' ',
                        '.',
                        '\\',
                        '\0.txt',
                        '/../' + parts[-1],
                        '.txt',
                        ':x',
                        '/a.txt',
                    ]
                )
            case 4:
                return (
                    choose(
                        [
                            '~/',
                            '~root/',
                            './',
                            '//',
                            '/',
                            '/proc/self/cwd/',
                            '/proc/self/root/',
                            '/dev/fd/',
                            'r0:',
                            'notes:',
                            'file://',
                            '-',
                            '\\',
                        ]
                    )
                    + text
                )
            case 5:
                return f'/proc/self/root{self.ws}/{text}'
            case 6:
                return f'/proc/{os.getpid()}/fd/{self.random.randint(0, 12)}/{text}'
            case 7:
                parts[at] = choose(['x' * 300, 'd/' * 250, '../' * 30, 'x' * 5_000, '*', '$HOME', '..', '...'])
            case 8:
                return f'../{self.ws.name}/{text}'
            case 9:
                parts[at] = choose(['..', '%2e%2e', '．．', '..\u200b', '. .', '..;'])
            case _:
                return choose(
                    [text[::-1], text.replace('/', '\\'), text.replace('/', '//'), text.replace('/', '∕'), '', text * 2]
                )
        return '/'.join(parts)

    def call(self):
        """The name of a tool, and arguments for it."""
        name = self.random.choice(OPERATIONS)
        arguments = {'path': self.path()}
        if name in ('move', 'copy'):
            arguments['dest'] = self.path()
        if name == 'write_file':
            arguments['content'] = self.token()
        if name == 'edit_file':
            arguments |= {'old_text': '>>', 'new_text': '>>!'}
        return name, arguments


def walked(top):
    """Everything below a directory, links unfollowed, in one order."""
    found = []
    for folder, folders, files in os.walk(top):
        folders.sort()
        found += [top.__class__(folder, name) for name in [*folders, *sorted(files)]]
    return found


@dataclass
class Seen:
    """What stands where, at one moment."""

    files: dict = field(default_factory=dict)
    """By path as it lies: kind, inode, time of the last change (of what is no directory in a root), content."""
    roots: dict = field(default_factory=dict)
    """By path: the name of the root it lies in, or `None`."""
    places: dict = field(default_factory=dict)
    """By content: the paths of the inode that has it."""


def see(world):
    """Look at everything from the top."""
    tops = {os.path.normpath(world.ws / each['root']): name for name, each in world.config['paths'].items()}
    seen = Seen()
    for path in [world.top, *walked(world.top)]:
        text, status = str(path), os.lstat(path)
        root = tops.get(text, seen.roots.get(os.path.dirname(text)))
        # A root itself is changed by nothing but its entries; it belongs to what it lies in.
        seen.roots[text] = root
        content = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_text()
            for token in _TOKEN.findall(content):
                seen.places.setdefault(token, []).append(text)
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        is_folder = stat.S_ISDIR(status.st_mode)
        seen.files[text] = (status.st_mode, status.st_ino, None if is_folder and root else status.st_mtime_ns, content)
    return seen


@dataclass
class Tried:
    """One call, and what it did."""

    name: str
    arguments: dict
    decided: str
    roots: set
    told: str
    before: Seen
    after: Seen
    fresh: set
    """Contents that came between the decision and the call."""


def attempt(world, *, swaps=True):
    """Make a call, decide it, perhaps let another process interfere, and do it as if a person had consented."""
    world.look()
    name, arguments = world.call()
    decision = world.tools.sandbox.decide(name, arguments['path'], arguments.get('dest'))
    roots = {file.partition(':')[0] for file in decision.files}
    before = see(world)
    fresh = set()
    try:
        request = world.tools.check_approval(ApprovalContext(tool_name=name, args=arguments))
    except PermissionError as error:
        return Tried(name, arguments, 'block', roots, str(error), before, see(world), fresh)
    if swaps and world.random.random() < 0.4:
        world.swap()
        earlier, before = before, see(world)
        fresh = before.places.keys() - earlier.places.keys()
    if swaps and world.aim is not None and decision.files and world.aim.random() < 0.4:
        world.write(world.place_of(world.aim.choice(decision.files)))
        earlier, before = before, see(world)
        fresh |= before.places.keys() - earlier.places.keys()
        fresh &= before.places.keys()
    try:
        told = world.tools.run(name, arguments)
    except (PermissionError, ApprovalError) as error:
        told = str(error)
    return Tried(name, arguments, 'ask' if request else 'allow', roots, told, before, see(world), fresh)


def harm(world, tried):
    """What the call did that never may happen; empty if nothing."""
    before, after = tried.before, tried.after
    changed = [
        path for path in before.files.keys() | after.files.keys() if before.files.get(path) != after.files.get(path)
    ]
    if tried.decided == 'block' and changed:
        return f'a refused call changed {changed}'
    for path in sorted(changed):
        if problem := _wrong_change(world, tried, path):
            return f'{problem}: {path}'
    moved = {token for token, paths in after.places.items() if set(paths) - set(before.places.get(token, paths))}
    for token in {*_TOKEN.findall(tried.told), *moved} & before.places.keys():
        if problem := _wrong_source(world, tried, before.places[token]):
            return f'{problem}: {before.places[token]}'
    if tried.decided == 'ask' and not tried.fresh <= after.places.keys():
        return 'content that nobody was shown is gone'
    given = ' '.join(str(each) for each in tried.arguments.values())
    # A link in a root may have the name in its text, and a directory made through it the name itself.
    is_known = any(
        before.roots[path] and 'OUTSIDE' in f'{os.path.basename(path)} {before.files[path][3]}' for path in before.files
    )
    if 'root:x:0' in tried.told or ('OUTSIDE' in tried.told and 'OUTSIDE' not in given and not is_known):
        return 'something from outside was told'
    if str(world.top) in tried.told and world.top.parent.name not in given:
        return 'a place on the host was told'
    left = [path for path in after.files if '.tool-approval-' in path]
    return f'a temporary file was left: {left}' if left else ''


def _wrong_change(world, tried, path):
    root = tried.after.roots.get(path, tried.before.roots.get(path))
    config = world.config['paths'].get(root)
    if config is None:
        return 'something outside changed'
    if config['mode'] != 'rw':
        return 'something in a read-only root changed'
    names = os.path.relpath(path, world.top).casefold().split('/')
    if {'.git', 'git~1', '.approvals', 'approvals.yaml'} & set(names) or path == str(world.ws / PROTECTED):
        return 'something protected changed'
    mode = tried.after.files.get(path, tried.before.files.get(path))[0]
    if stat.S_ISREG(mode) and not _has_suffix(path, config):
        return 'a file whose suffix is not allowed changed'
    if tried.decided == 'allow' and config['write_approval']:
        return 'what needs approval changed unasked'
    return '' if root in tried.roots else 'a root changed that the decision did not name'


def _wrong_source(world, tried, paths):
    """Of the names that the inode of a content that was read has, one must be allowed."""
    configs = [(tried.before.roots[path], world.config['paths'].get(tried.before.roots[path])) for path in paths]
    allowed = [
        (root, config)
        for (root, config), path in zip(configs, paths, strict=True)
        if config is not None and _has_suffix(path, config)
    ]
    if not allowed:
        return 'something outside, or with another suffix, was read'
    if tried.decided == 'allow':
        # A copy has the same content, but is another inode.
        inodes = [tried.before.files[path][1] for path in paths]
        if tried.name != 'move' and len(inodes) > 1 and all(inodes.count(inode) > 1 for inode in inodes):
            return 'a file with more names was read unasked'
        if all(config['read_approval'] for _, config in allowed):
            return 'what needs approval was read unasked'
    return '' if any(root in tried.roots for root, _ in allowed) else 'a root was read that the decision did not name'


def _has_suffix(path, config):
    name = os.path.basename(path)
    return config['suffixes'] is None or any(name.endswith(each) and name != each for each in config['suffixes'])

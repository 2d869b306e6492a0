"""Another process swaps files, directories and links while the tools work."""

import subprocess
import sys

import pytest
from tool_approval.tools.file_sandbox import FileToolError, perform

from .world import context

TRIES = [pytest.param(300, id='300'), pytest.param(10_000, id='10000', marks=pytest.mark.slow)]

SWAP_FILE = """
os.symlink(f'{top}/outside/secret.txt', 'ws/cache/link'); open('ws/cache/file', 'w').write('inside')
while True:
    os.replace('ws/cache/link', 'ws/cache/x'); os.symlink(f'{top}/outside/secret.txt', 'ws/cache/link')
    os.replace('ws/cache/file', 'ws/cache/x'); open('ws/cache/file', 'w').write('inside')
"""

SWAP_PARENT = """
import shutil
def rename(old, new):
    while True:
        try:
            return os.rename(old, new)
        except OSError:
            shutil.rmtree(new, ignore_errors=True)  # the tools have made it meanwhile
os.symlink(f'{top}/outside', 'ws/link'); os.makedirs('ws/cache/p', exist_ok=True)
while True:
    rename('ws/cache/p', 'ws/q'); rename('ws/link', 'ws/cache/p')
    rename('ws/cache/p', 'ws/link'); rename('ws/q', 'ws/cache/p')
"""

SWAP_LINK = """
os.symlink('c.dat', 'ws/cache/inner'); os.symlink('../../outside/secret.txt', 'ws/cache/outer')
while True:
    for kind, target in (('inner', 'c.dat'), ('outer', '../../outside/secret.txt')):
        os.replace(f'ws/cache/{kind}', 'ws/cache/x'); os.symlink(target, f'ws/cache/{kind}')
"""

SWAP_PIPE = """
os.mkfifo('ws/cache/pipe')
while True:
    open('ws/cache/file', 'w').write('inside'); os.replace('ws/cache/file', 'ws/cache/x')
    os.link('ws/cache/pipe', 'ws/cache/again'); os.replace('ws/cache/again', 'ws/cache/x')
    if os.path.lexists('ws/cache/again'):
        os.unlink('ws/cache/again')  # a tool has put the pipe back, and a file is not renamed to itself
"""


class Racer:
    """A process that runs lines in the test's directory until it is told to end."""

    def __init__(self, lines, top):
        script = f'import os, sys\ntop = sys.argv[1]\nos.chdir(top)\nprint(flush=True)\n{lines}'
        self.process = subprocess.Popen(
            [sys.executable, '-c', script, str(top)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.process.stdout.readline()

    def __enter__(self):
        return self.process

    def __exit__(self, *error):
        is_alive = self.process.poll() is None
        self.process.kill()
        self.process.communicate()
        assert is_alive, 'the race was over before the end'


@pytest.mark.parametrize('tries', TRIES)
@pytest.mark.parametrize(
    ('lines', 'path'),
    [(SWAP_FILE, 'cache/x'), (SWAP_PARENT, 'cache/p/secret.txt'), (SWAP_LINK, 'cache/x'), (SWAP_PIPE, 'cache/x')],
    ids=['file', 'parent', 'link', 'pipe'],
)
def test_nothing_outside_is_read_or_written(world, lines, path, tries):
    tools = world.tools()
    calls = [
        ('read_file', {'path': path}),
        ('write_file', {'path': path, 'content': 'new'}),
        ('edit_file', {'path': path, 'old_text': 'n', 'new_text': 'm', 'replace_all': True}),
        ('copy', {'path': path, 'dest': 'cache/copy'}),
        ('delete', {'path': path}),
        ('move', {'path': 'cache/copy', 'dest': path}),
        ('list_files', {'path': path.rpartition('/')[0]}),
    ]
    done = 0

    with Racer(lines, world.top):
        for number in range(tries):
            name, arguments = calls[number % len(calls)]
            try:
                tools.check_approval(context(name, **arguments))
                told = tools.run(name, arguments)
                done += 1
            except (PermissionError, FileToolError) as error:
                told = str(error)
            assert 'SECRET' not in told
            assert str(world.top) not in told

    assert done > 0
    assert sorted(path.name for path in (world.top / 'outside').iterdir()) == ['dir', 'secret.txt']
    assert (world.top / 'outside/secret.txt').read_text() == 'SECRET\n'
    assert list((world.top / 'outside/dir').iterdir()) == []
    files = [path for path in world.ws.rglob('*') if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if 'SECRET' in path.read_text()]


REPLACE_WHEN_TOLD = """
for number, line in enumerate(sys.stdin):
    open('ws/cache/theirs', 'w').write(f'theirs {number}')
    print('ready', flush=True)
    for _ in range(int(sys.stdin.readline())):
        pass
    os.replace('ws/cache/theirs', 'ws/cache/x')
    print('done', flush=True)
"""


@pytest.mark.parametrize('tries', TRIES)
def test_content_that_nobody_was_shown_is_never_lost(world, tries):
    """The other process replaces the file once in each round: later where it came first, earlier where it came last."""
    sandbox = world.sandbox()
    folder = world.ws / 'cache'
    changes = 0
    pause = 10_000.0

    with Racer(REPLACE_WHEN_TOLD, world.top) as other:

        def tell(line):
            other.stdin.write(f'{line}\n'.encode())
            other.stdin.flush()

        for number in range(tries):
            (folder / 'x').write_text('shown')
            tell('next')
            assert other.stdout.readline() == b'ready\n'
            with sandbox.open('write_file', 'cache/x') as access:
                expected = {target.key: target.state() for target in access.targets}
                tell(int(pause))
                try:
                    perform(sandbox, access, {'content': 'ours'}, expected)
                except FileToolError:
                    changes += 1
                    pause *= 1.17
                else:
                    pause *= 0.85
            assert other.stdout.readline() == b'done\n'
            found = {path.read_text() for path in folder.iterdir()}
            assert f'theirs {number}' in found
            for path in folder.glob('x.kept-*'):
                path.unlink()

    assert 0 < changes < tries
    assert not list(folder.glob('.tool-approval-*'))

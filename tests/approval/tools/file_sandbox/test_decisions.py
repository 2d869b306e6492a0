"""The file sandbox decides about calls as `decisions.toml` says.

The fields of a group, beside `title` and `reason`:

- `sandbox`: the roots, those of the sample cases (`base`, unless given) or roots in one another (`overlapping`)
- `paths`: more roots, and `protected`: protected files, where `{ws}` is the working directory
- `setup`: a script that runs in the working directory first
- `allow`, `ask`, `block`: calls, one a line, in the quotes of a shell
- `never_changed`: paths that no operation may change, move away or replace
- `not_touched`: paths that no operation may change, move away or replace by a move
"""

import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.tables import table

from .world import BASE, OVERLAPPING

GROUPS = tomllib.loads(Path(__file__).with_name('decisions.toml').read_text())['group']
SANDBOXES = {'base': BASE, 'overlapping': OVERLAPPING}
SETTINGS = {'title', 'reason', 'sandbox', 'paths', 'protected', 'setup'}


def calls(field, line):
    """The outcome that a line of a field expects, for each call that it stands for."""
    match field:
        case 'never_changed':
            changes = [(operation, line) for operation in ('write_file', 'edit_file', 'make_directory', 'delete')]
            moves = [('move', line, 'x'), ('move', 'cache/c.dat', line), ('copy', 'cache/c.dat', line)]
            return [('block', call) for call in changes + moves]
        case 'not_touched':
            changes = [(operation, line) for operation in ('write_file', 'edit_file', 'delete')]
            return [('block', call) for call in [*changes, ('move', line, 'away'), ('move', 'cache/c.dat', line)]]
        case 'allow' | 'ask' | 'block':
            return [(field, shlex.split(line))]
    raise AssertionError(f'unknown field {field}')


@pytest.mark.parametrize('group', GROUPS, ids=[group['title'] for group in GROUPS])
def test_calls_are_decided_as_their_group_says(world, group):
    subprocess.run(['bash', '-ec', group.get('setup', '')], cwd=world.ws, check=True)
    base = SANDBOXES[group.get('sandbox', 'base')]
    config = {'paths': {**base['paths'], **group.get('paths', {})}}
    protected = [path.format(ws=world.ws) for path in group.get('protected', ())]
    sandbox = world.sandbox(config, protected=protected)
    lines = [(field, line) for field in group if field not in SETTINGS for line in group[field].splitlines()]

    @table(('outcome', 'call'), [row for field, line in lines for row in calls(field, line)])
    def is_decided(outcome, call):
        assert sandbox.decide(*call).outcome == outcome, group['reason']

    is_decided()


def test_nothing_comes_to_stand_where_the_directory_of_something_protected_would(world):
    (world.ws / 'cache/tmp').mkdir(parents=True)
    (world.ws / 'cache/tmp/memory.json').write_text('x')
    (world.ws / 'cache/file.dat').write_text('x')
    sandbox = world.sandbox(OVERLAPPING, protected=['cache/state/memory.json'])

    for call in (
        ('move', 'cache/tmp', 'cache/state'),
        ('move', 'cache/tmp', 'cache/STATE'),
        ('move', 'cache/file.dat', 'cache/state'),
        ('copy', 'cache/file.dat', 'cache/state'),
        ('write_file', 'cache/state'),
        ('edit_file', 'cache/state'),
    ):
        decision = sandbox.decide(*call)
        assert (decision.outcome, 'is protected' in decision.reason) == ('block', True), call
    assert sandbox.decide('make_directory', 'cache/state').outcome != 'block'
    for path in ('cache/state2', 'cache/stat', 'cache/other/memory.json'):
        assert 'is protected' not in sandbox.decide('write_file', path).reason
    assert 'is protected' not in sandbox.decide('move', 'cache/tmp', 'cache/other').reason

"""What decides on approvals, or makes git run programs, is never written."""

import pytest

from .world import OVERLAPPING


def outcomes(world, path, **options):
    sandbox = world.sandbox(OVERLAPPING, **options)
    changes = [('write_file', path), ('edit_file', path), ('make_directory', path), ('delete', path)]
    moves = [('move', path, 'x'), ('move', 'cache/c.dat', path), ('copy', 'cache/c.dat', path)]
    return {sandbox.decide(*each).outcome for each in [*changes, *moves]}


@pytest.mark.parametrize(
    'path',
    [
        '.git',
        '.git/config',
        '.git/hooks/pre-commit',
        '.GIT/config',
        'deep/er/.git/hooks/x',
        'cache/../.git/config',
        '.approvals/memory.json',
        'tool_approval.yaml',
        'sub/approvals.toml',
        'approvals.YML',
    ],
)
@pytest.mark.parametrize('is_there', [True, False])
def test_control_files_are_never_changed_even_when_missing(world, path, is_there):
    if is_there:
        place = (world.ws / path).resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text('x')

    assert outcomes(world, path) == {'block'}


def test_control_files_are_never_changed_through_a_link(world):
    (world.ws / '.git').mkdir()
    (world.ws / 'policy').symlink_to('approvals.yaml')
    (world.ws / 'g').symlink_to('.git')

    sandbox = world.sandbox(OVERLAPPING)

    assert sandbox.decide('write_file', 'policy').outcome == 'block'
    assert sandbox.decide('write_file', 'g/config').outcome == 'block'


@pytest.mark.parametrize(
    ('link', 'target', 'paths'),
    [
        ('.git', 'g', ['.git/config', 'g/config', 'g/hooks/pre-commit', 'g']),
        ('approvals.yaml', 'base.txt', ['approvals.yaml', 'base.txt']),
        ('.approvals', 'kept', ['.approvals/memory.json', 'kept/memory.json']),
        ('sub/.git', '../g', ['sub/.git/config']),
    ],
)
def test_a_control_file_that_is_a_link_is_never_changed_under_its_name_or_where_it_leads(world, link, target, paths):
    (world.ws / 'sub').mkdir()
    place = world.ws / link
    (world.ws / 'g').mkdir()
    place.symlink_to(target)

    for path in paths:
        assert outcomes(world, path) == {'block'}, path


def test_where_the_git_file_of_a_worktree_leads_is_never_changed(world):
    (world.ws / '.git').write_text('gitdir: data/one\n')
    (world.ws / 'data/one').mkdir(parents=True)

    assert outcomes(world, 'data/one/hooks/pre-commit') == {'block'}
    assert 'allow' in outcomes(world, 'data/two')


@pytest.mark.parametrize(
    ('git', 'links', 'files', 'paths', 'free'),
    [
        # `..` behind a link is what is above where the link leads.
        ('gitdir: cache/l/../wt\n', {'cache/l': 'deep/er'}, {}, ['cache/deep/wt/config'], 'cache/wt/config'),
        ('gitdir: cache/wt\r\n', {}, {}, ['cache/wt/config'], 'cache/other'),
        ('gitdir: cache/l\n', {'cache/l': 'wt'}, {'cache/wt/commondir': '../all'}, ['cache/all/config'], 'cache/x'),
        (None, {'.git': 'cache/wt'}, {'cache/wt/commondir': '../all\n'}, ['cache/all/config', 'cache/wt/x'], 'cache/x'),
        (None, {}, {'.git/commondir': '../cache/all\n'}, ['cache/all/config'], 'cache/x'),
    ],
)
def test_where_git_is_led_is_what_git_makes_of_it(world, git, links, files, paths, free):
    for folder in ('cache/deep/er', 'cache/deep/wt', 'cache/wt', 'cache/all'):
        (world.ws / folder).mkdir(parents=True, exist_ok=True)
    for link, target in links.items():
        (world.ws / link).symlink_to(target)
    for file, content in files.items():
        (world.ws / file).parent.mkdir(exist_ok=True)
        (world.ws / file).write_text(content)
    if git is not None:
        (world.ws / '.git').write_text(git)

    for path in paths:
        assert outcomes(world, path) == {'block'}, path
    for link in links:
        assert world.decide('delete', link, config=OVERLAPPING) == 'block'
    assert world.decide('write_file', free, config=OVERLAPPING) == 'allow'


@pytest.mark.parametrize(
    ('links', 'policy', 'paths'),
    [
        ({'conf': 'real'}, 'conf/my.yaml', ['conf', 'conf/my.yaml', 'real', 'real/my.yaml']),
        ({'my.yaml': 'a.yaml', 'a.yaml': 'b.yaml'}, 'my.yaml', ['my.yaml', 'a.yaml', 'b.yaml']),
        ({'conf': '{top}/ws/real/../real'}, 'conf/../conf/my.yaml', ['conf', 'real/my.yaml']),
        ({'x': 'y', 'y': 'x'}, 'x', ['x', 'y']),
    ],
)
def test_no_link_on_the_way_to_a_protected_file_is_changed(world, links, policy, paths):
    (world.ws / 'real').mkdir()
    (world.ws / 'real/my.yaml').write_text('x')
    (world.ws / 'b.yaml').write_text('x')
    for link, target in links.items():
        (world.ws / link).symlink_to(target.format(top=world.top))

    sandbox = world.sandbox(OVERLAPPING, protected=[policy])

    for path in paths:
        for operation in ('write_file', 'edit_file', 'delete'):
            assert sandbox.decide(operation, path).outcome == 'block', path
        assert sandbox.decide('move', path, 'away').outcome == 'block', path
        assert sandbox.decide('move', 'cache/c.dat', path).outcome == 'block', path


def test_reading_them_is_a_matter_of_the_rules(world):
    assert world.decide('read_file', '.git/config', config=OVERLAPPING) == 'allow'


@pytest.mark.parametrize('inner', ['.git/config', 'approvals.yaml', 'a/b/.GIT/x'])
def test_a_directory_that_contains_one_is_neither_moved_nor_deleted(world, inner):
    place = world.ws / 'project' / inner
    place.parent.mkdir(parents=True)
    place.write_text('x')

    assert world.decide('move', 'project', 'other', config=OVERLAPPING) == 'block'
    assert world.decide('delete', 'project', config=OVERLAPPING) == 'block'


@pytest.mark.parametrize('is_there', [True, False])
def test_what_is_protected_is_never_changed_nor_moved_with_a_parent(world, is_there):
    if is_there:
        (world.ws / 'conf/deep').mkdir(parents=True)
        (world.ws / 'conf/deep/audit.jsonl').write_text('x')
    options = {'protected': ['conf/deep/audit.jsonl']}

    assert outcomes(world, 'conf/deep/audit.jsonl', **options) == {'block'}
    assert outcomes(world, 'Conf/deep/AUDIT.jsonl', **options) == {'block'}
    sandbox = world.sandbox(OVERLAPPING, **options)
    for parent in ('conf', 'conf/deep'):
        assert sandbox.decide('move', parent, 'x').outcome == 'block'
        assert sandbox.decide('delete', parent).outcome == 'block'
    assert sandbox.decide('write_file', 'conf/deep/other').outcome == 'allow'


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


def test_a_protected_directory_is_protected_with_all_it_contains(world):
    assert outcomes(world, 'state/a/b', protected=[world.ws / 'state']) == {'block'}


def test_a_protected_link_is_protected_as_it_is_written_and_as_it_leads(world):
    (world.ws / 'policy').symlink_to('cache/c.dat')

    sandbox = world.sandbox(OVERLAPPING, protected=['policy'])

    assert sandbox.decide('write_file', 'policy').outcome == 'block'
    assert sandbox.decide('write_file', 'cache/c.dat').outcome == 'block'
    assert sandbox.decide('delete', 'policy').outcome == 'block'
    assert sandbox.decide('move', 'cache', 'x').outcome == 'block'

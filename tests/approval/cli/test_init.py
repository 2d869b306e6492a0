"""A first settings file: what is asked, what is written, and what is never replaced."""

import os

import pytest
from tool_approval.cli.trust import allowances
from tool_approval.settings import effective, load_settings


@pytest.fixture
def fresh(work):
    (work / 'approvals.yaml').unlink()
    return work


def written(work):
    return load_settings(directory=work)


@pytest.mark.parametrize(
    ('names', 'presets'),
    [
        ([], ('default',)),
        (['pyproject.toml'], ('default', 'python')),
        (['setup.py', 'requirements.txt', '.git/'], ('default', 'python', 'git')),
        (['package.json', 'Cargo.toml', 'go.mod'], ('default', 'node', 'rust', 'go')),
        (['sub/pyproject.toml', 'Package.json', '\x1b[2J\u202epackage.json', 'package.json\n'], ('default',)),
    ],
)
def test_init_chooses_presets_by_the_files_of_the_directory(tool_approval, fresh, names, presets):
    for name in names:
        path = fresh / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith('/') else path.touch()

    finished = tool_approval('init', '--yes')

    loaded = written(fresh)
    assert finished.status == 0
    assert loaded.settings.extends == presets
    assert (loaded.trusted, loaded.settings.mode, loaded.settings.shell.network) == (True, 'interactive', False)
    assert '\x1b' not in finished.out + finished.err


def test_init_chooses_a_preset_by_a_broken_link_too(tool_approval, fresh):
    (fresh / 'package.json').symlink_to('/nowhere')

    tool_approval('init', '--yes')

    assert written(fresh).settings.extends == ('default', 'node')


@pytest.mark.parametrize(
    ('typed', 'presets', 'network', 'mode'),
    [
        ('\n\n\n\ny', ('default', 'go'), False, 'interactive'),
        ('\n\n\n\n\n', ('default', 'go'), False, 'interactive'),
        ('read-only, git\ny\nc\nn\ny', ('read-only', 'git'), True, 'strict'),
        ('go\nN\nS\nI\nY', ('go',), False, 'interactive'),
    ],
)
def test_four_answers_decide_the_written_file(tool_approval, fresh, typed, presets, network, mode):
    (fresh / 'go.mod').touch()

    finished = tool_approval('init', typed=typed, is_terminal=True)

    loaded = written(fresh)
    assert finished.status == 0
    assert 'Found: go.mod.' in finished.out
    assert max(len(line) for line in finished.out.partition('The file would allow:')[0].splitlines()) < 80
    assert (loaded.settings.extends, loaded.settings.shell.network, loaded.settings.mode) == (presets, network, mode)
    assert loaded.trusted


@pytest.mark.parametrize(
    ('who', 'start'), [('i', 'tool-approval run --model'), ('p', 'tool-approval run --inbox --model')]
)
def test_written_file_has_the_command_that_starts_an_agent(tool_approval, fresh, who, start):
    tool_approval('init', typed=f'\n\n\n{who}\ny', is_terminal=True)

    assert f'# `{start} NAME` starts an agent with these rules.' in (fresh / 'approvals.yaml').read_text()
    assert written(fresh).settings.mode == 'interactive'


def test_init_does_not_ask_about_what_its_options_give(tool_approval, fresh):
    finished = tool_approval('init', '--preset', 'git', '--network', '--strict', typed='\ny', is_terminal=True)

    loaded = written(fresh)
    assert 'Found' not in finished.out
    assert (loaded.settings.extends, loaded.settings.shell.network, loaded.settings.mode) == (('git',), True, 'strict')


@pytest.mark.parametrize(
    ('typed', 'said'),
    [
        ('', 'the input ended, so nothing was written'),
        ('\n\n\n\nn', 'nothing was written'),
        ('\n\n\n\n', 'nothing was written'),
        ('\nperhaps\n', "'perhaps' is not an answer; type n or y; nothing was written"),
        ('\n\nyes\n', "'yes' is not an answer; type c or s; nothing was written"),
        ('\n\n\nip\n', "'ip' is not an answer; type i or p or n; nothing was written"),
        ('\n\n\nsomebody\n', "'somebody' is not an answer; type i or p or n; nothing was written"),
        ('pyton\n\n\n\ny', 'unknown value `pyton`; did you mean `python`?'),
        ("it's\n\n\n\ny", "unknown value `it's`"),
    ],
)
def test_without_four_answers_and_a_yes_nothing_is_written(tool_approval, fresh, typed, said):
    finished = tool_approval('init', typed=typed, is_terminal=True)

    assert finished.status == 2
    assert said in finished.err
    assert not os.path.lexists(fresh / 'approvals.yaml')


def test_without_a_terminal_nothing_is_asked_or_written(tool_approval, fresh):
    finished = tool_approval('init', typed='\n\n\ny')

    assert finished.status == 2
    assert 'without a terminal, the command cannot ask, so nothing was written' in finished.err
    assert not os.path.lexists(fresh / 'approvals.yaml')


def test_the_whole_file_and_what_it_allows_are_shown_before_it_is_written(tool_approval, fresh):
    finished = tool_approval('init', '--yes', '--preset', 'rust')

    shown = finished.out.splitlines()
    text = (fresh / 'approvals.yaml').read_text()
    assert [line.removeprefix('| ').removeprefix('|') for line in shown if line.startswith('|')] == text.splitlines()
    assert any(
        line.endswith('commands of the preset `rust` run without approval if they are confined') for line in shown
    )
    assert (
        shown[-1]
        == f'{fresh}/approvals.yaml is written. The file is trusted until the file or one of its presets changes.'
    )


@pytest.mark.parametrize('options', [(), ('--preset', 'git'), ('--strict',)])
def test_written_file_passes_strict_check(tool_approval, fresh, options):
    tool_approval('init', '--yes', *options)

    finished = tool_approval('check', '--strict')

    *notes, trusted, counts = finished.out.splitlines()
    assert (finished.status, trusted, counts) == (
        0,
        'note: approvals.yaml: the file is trusted',
        '0 errors, 0 warnings',
    )
    begins = (
        'note: approvals.yaml:8: extends: commands that run without approval if an OS sandbox confines them: preset `'
    )
    assert [note.split('`: `')[0] for note in notes] == [f'{begins}{each}' for each in written(fresh).settings.extends]


def test_with_a_network_check_warns_and_passes(tool_approval, fresh):
    tool_approval('init', '--yes', '--network')

    finished = tool_approval('check')

    assert finished.status == 0
    assert 'shell.network: commands can use the network without approval' in finished.out


@pytest.mark.parametrize('name', ['approvals.yaml', 'approvals.yml', 'approvals.toml'])
@pytest.mark.parametrize('kind', ['file', 'folder', 'link', 'broken link'])
def test_existing_file_is_never_replaced(tool_approval, fresh, name, kind, tmp_path):
    path, other = fresh / name, tmp_path / 'other'
    match kind:
        case 'file':
            path.write_text('mode: strict\n')
        case 'folder':
            path.mkdir()
        case 'link':
            other.write_text('theirs')
            path.symlink_to(other)
        case _:
            path.symlink_to(other)

    finished = tool_approval('init', '--yes')

    assert finished.status == 2
    assert 'already exists and was not changed' in finished.err
    assert sorted(each.name for each in fresh.iterdir()) == sorted(['cache', 'notes', name])
    assert (other.read_text() if kind == 'link' else not other.exists()) in ('theirs', True)


@pytest.mark.parametrize('target', ['nowhere', 'theirs'])
def test_link_created_during_init_is_not_followed(tool_approval, fresh, tmp_path, monkeypatch, target):
    place = tmp_path / target
    if target == 'theirs':
        place.write_text('theirs')

    def link(settings, directory):
        (fresh / 'approvals.yaml').symlink_to(place)
        return allowances(settings, directory)

    monkeypatch.setattr('tool_approval.cli.init.allowances', link)

    finished = tool_approval('init', '--yes')

    assert finished.status == 2
    assert 'File exists' in finished.err
    assert place.exists() == (target == 'theirs')


def test_file_changed_during_init_is_not_trusted(tool_approval, fresh, monkeypatch):
    def swapped(**options):
        (fresh / 'approvals.yaml').write_text('default: none')
        return load_settings(**options)

    monkeypatch.setattr('tool_approval.cli.init.load_settings', swapped)

    finished = tool_approval('init', '--yes')

    assert finished.status == 2
    assert 'has changed since then; it is not trusted' in finished.err
    assert not written(fresh).trusted


def test_init_takes_a_directory(tool_approval, fresh):
    (fresh / 'notes' / 'go.mod').touch()

    finished = tool_approval('init', '--yes', '--cwd', 'notes')

    assert finished.status == 0
    assert written(fresh / 'notes').settings.extends == ('default', 'go')


def test_name_of_a_directory_prints_no_control_characters(tool_approval, fresh):
    (fresh / 'a\x1b[2Jb').mkdir()

    finished = tool_approval('init', '--yes', '--cwd', 'a\x1b[2Jb')

    assert finished.status == 0
    assert '\x1b' not in finished.out


@pytest.mark.parametrize(('typed', 'is_asked'), [('c', True), ('?\nc', True), ('s', False), ('?\n?\ns', False)])
def test_an_answer_says_whether_changes_ask(tool_approval, fresh, typed, is_asked):
    finished = tool_approval('init', typed=f'\n\n{typed}\n\ny', is_terminal=True)

    settings = effective(written(fresh))
    assert finished.status == 0
    assert ('Changes that are not committed cannot be undone.' in finished.out) == ('?' in typed)
    assert settings.sandbox.paths['project'].write_approval == is_asked
    assert settings.shell.host == ()

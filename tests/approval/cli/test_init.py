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


def test_without_questions_the_file_is_careful(tool_approval, fresh):
    finished = tool_approval('init', '--yes')

    loaded = written(fresh)
    assert finished.status == 0
    assert loaded.settings.extends == ('default',)
    assert (loaded.trusted, loaded.settings.mode, loaded.settings.shell.network) == (True, 'interactive', False)


@pytest.mark.parametrize(
    ('typed', 'network', 'mode'),
    [
        ('\n\n\ny', False, 'interactive'),
        ('\n\n\n\n', False, 'interactive'),
        ('y\nc\nn\ny', True, 'strict'),
        ('N\nS\nI\nY', False, 'interactive'),
    ],
)
def test_three_answers_decide_the_written_file(tool_approval, fresh, typed, network, mode):
    finished = tool_approval('init', typed=typed, is_terminal=True)

    loaded = written(fresh)
    assert finished.status == 0
    assert max(len(line) for line in finished.out.partition('The file would allow:')[0].splitlines()) < 80
    assert (loaded.settings.shell.network, loaded.settings.mode) == (network, mode)
    assert loaded.trusted


@pytest.mark.parametrize(
    ('who', 'start'), [('i', 'tool-approval run --model'), ('p', 'tool-approval run --inbox --model')]
)
def test_written_file_has_the_command_that_starts_an_agent(tool_approval, fresh, who, start):
    tool_approval('init', typed=f'\n\n{who}\ny', is_terminal=True)

    assert f'# `{start} NAME` starts an agent with these rules.' in (fresh / 'approvals.yaml').read_text()
    assert written(fresh).settings.mode == 'interactive'


def test_init_does_not_ask_about_what_its_options_give(tool_approval, fresh):
    tool_approval('init', '--preset', 'read-only', '--network', '--strict', typed='\ny', is_terminal=True)

    held = written(fresh).settings
    assert (held.extends, held.shell.network, held.mode) == (('read-only',), True, 'strict')


@pytest.mark.parametrize(
    ('typed', 'said'),
    [
        ('', 'the input ended, so nothing was written'),
        ('\n\n\nn', 'nothing was written'),
        ('\n\n\n', 'nothing was written'),
        ('perhaps\n', "'perhaps' is not an answer; type n or y; nothing was written"),
        ('\nyes\n', "'yes' is not an answer; type c or s; nothing was written"),
        ('\n\nip\n', "'ip' is not an answer; type i or p or n; nothing was written"),
        ('\n\nsomebody\n', "'somebody' is not an answer; type i or p or n; nothing was written"),
    ],
)
def test_without_three_answers_and_a_yes_nothing_is_written(tool_approval, fresh, typed, said):
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
    finished = tool_approval('init', '--yes')

    shown = finished.out.splitlines()
    text = (fresh / 'approvals.yaml').read_text()
    assert [line.removeprefix('| ').removeprefix('|') for line in shown if line.startswith('|')] == text.splitlines()
    assert '  - confined commands without a matching rule run without approval' in shown
    assert (
        shown[-1]
        == f'{fresh}/approvals.yaml is written. The file is trusted until the file or one of its presets changes.'
    )


@pytest.mark.parametrize('options', [(), ('--preset', 'read-only'), ('--strict',)])
def test_written_file_passes_strict_check(tool_approval, fresh, options):
    tool_approval('init', '--yes', *options)

    finished = tool_approval('check', '--strict')

    assert (finished.status, finished.out.splitlines()) == (
        0,
        ['note: approvals.yaml: the file is trusted', '0 errors, 0 warnings'],
    )


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
    finished = tool_approval('init', '--yes', '--cwd', 'notes')

    assert finished.status == 0
    assert written(fresh / 'notes').settings.extends == ('default',)


def test_name_of_a_directory_prints_no_control_characters(tool_approval, fresh):
    (fresh / 'a\x1b[2Jb').mkdir()

    finished = tool_approval('init', '--yes', '--cwd', 'a\x1b[2Jb')

    assert finished.status == 0
    assert '\x1b' not in finished.out


@pytest.mark.parametrize(('typed', 'is_asked'), [('c', True), ('?\nc', True), ('s', False), ('?\n?\ns', False)])
def test_an_answer_says_whether_changes_ask(tool_approval, fresh, typed, is_asked):
    finished = tool_approval('init', typed=f'\n{typed}\n\ny', is_terminal=True)

    settings = effective(written(fresh))
    assert finished.status == 0
    assert ('Changes that are not committed cannot be undone.' in finished.out) == ('?' in typed)
    assert settings.sandbox.paths['project'].write_approval == is_asked
    assert settings.shell.host == ()

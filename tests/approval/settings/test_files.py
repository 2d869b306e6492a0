"""The file is found, read once, and trusted or not."""

import hashlib
import os
from pathlib import Path

import pytest
from tool_approval.settings import Settings, TrustStore, find_settings, load_settings, trust_settings

from tool_approval import ApprovalConfigError

from .documents import YAML

pytest.importorskip('yaml')


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / 'work'
    folder.mkdir()
    return folder


def mistake_in(path, **options):
    with pytest.raises(ApprovalConfigError) as mistake:
        load_settings(path, **options)
    return mistake.value


@pytest.mark.parametrize('name', ['approvals.yaml', 'approvals.yml', 'approvals.toml'])
def test_settings_file_of_a_directory_is_found(work, name):
    (work / name).touch()

    assert find_settings(work) == work / name


def test_no_file_is_found_above_a_directory(work):
    (work / 'approvals.yaml').touch()
    (work / 'below').mkdir()

    assert find_settings(work / 'below') is None


def test_missing_folder_or_plain_file_has_no_settings_file(work):
    (work / 'file').touch()

    assert find_settings(work / 'missing') is None
    assert find_settings(work / 'file') is None


def test_a_file_that_cannot_be_looked_for_is_an_error(work):
    (work / 'loop').symlink_to('loop')

    with pytest.raises(ApprovalConfigError, match='the folder cannot be searched: Too many levels of symbolic links'):
        find_settings(work / 'loop')


def test_two_files_are_an_error(work):
    (work / 'approvals.yaml').touch()
    (work / 'approvals.toml').symlink_to('nowhere')

    with pytest.raises(ApprovalConfigError, match=r'has `approvals.yaml` and `approvals.toml`; keep one of them'):
        find_settings(work)


def test_without_a_file_nothing_is_configured(work, store):
    loaded = load_settings(directory=work, trust=store)

    assert loaded.settings == Settings()
    assert (loaded.source, loaded.trusted, loaded.why_untrusted) == (None, True, None)
    assert loaded.digest == hashlib.sha256(b'').hexdigest()
    assert loaded.line_of(('tools',)) is None


@pytest.mark.parametrize('name', ['approvals.yaml', 'approvals.yml'])
def test_a_file_is_read_with_its_digest_and_lines(work, store, name):
    (work / name).write_text(YAML)

    loaded = load_settings(directory=work, trust=store)

    assert loaded.settings.shell.rules[1].pattern == 'rm'
    assert (loaded.source, loaded.directory) == (work / name, work)
    assert loaded.digest == hashlib.sha256(YAML.encode()).hexdigest()
    assert loaded.line_of(('shell', 'rules', 1, 'allowed')) == 23


def test_the_working_directory_is_the_default(work, store, monkeypatch):
    (work / 'approvals.yaml').write_text('mode: strict')
    monkeypatch.chdir(work)

    loaded = load_settings(trust=store)

    assert loaded.settings.mode == 'strict'
    assert loaded.directory == work


def test_an_error_names_the_file_as_the_user_would(work, store, monkeypatch):
    (work / 'approvals.yaml').write_text('mode: ask')
    monkeypatch.chdir(work.parent)

    assert mistake_in(None, directory='work', trust=store).source == 'work/approvals.yaml'
    monkeypatch.chdir(work)
    assert mistake_in(None, trust=store).source == 'approvals.yaml'


def test_a_relative_path_begins_at_the_directory(work, store):
    (work / 'other.yaml').write_text('mode: strict')

    assert load_settings('other.yaml', directory=work, trust=store).source == work / 'other.yaml'


def test_a_file_that_is_named_is_trusted_and_one_that_is_found_is_not(work, store):
    (work / 'approvals.yaml').write_text(YAML)

    found = load_settings(directory=work, trust=store)
    named = load_settings(work / 'approvals.yaml', directory=work, trust=store, named=True)

    assert (found.trusted, found.why_untrusted) == (False, 'the user has not trusted the file')
    assert (named.trusted, named.why_untrusted) == (True, None)
    assert found.settings == named.settings


def test_trust_covers_the_content_that_was_shown(work, store):
    (work / 'approvals.yaml').write_text('mode: strict')
    shown = load_settings(directory=work, trust=store)
    (work / 'approvals.yaml').write_text('default: none')

    held = trust_settings(shown, store)

    assert (held.trusted, held.settings.mode) == (True, 'strict')
    assert load_settings(directory=work, trust=store).why_untrusted == 'the file has changed since it was trusted'


def test_there_is_nothing_to_trust_without_a_file(work, store):
    with pytest.raises(ValueError, match='there is no file to trust'):
        trust_settings(load_settings(directory=work, trust=store), store)


def test_the_store_of_the_user_is_the_default(work, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'xdg'))
    (work / 'approvals.yaml').write_text('mode: strict')
    trust_settings(load_settings(directory=work), TrustStore())

    assert (tmp_path / 'xdg' / 'tool-approval' / 'trusted.json').is_file()
    assert load_settings(directory=work).trusted


def test_without_a_home_folder_nothing_is_trusted(work, homeless):
    (work / 'approvals.yaml').write_text('default: none')

    loaded = load_settings(directory=work)

    assert not loaded.trusted
    assert loaded.why_untrusted == 'there is no home folder, so no file is trusted; set HOME'


def test_byte_order_mark_is_accepted(work, store):
    (work / 'a.yaml').write_bytes(b'\xef\xbb\xbfmode: strict')

    assert load_settings(work / 'a.yaml', trust=store).settings.mode == 'strict'


@pytest.mark.parametrize('named', [True, False])
@pytest.mark.parametrize(
    ('path', 'name'), [('approvals.toml', 'approvals.toml'), ('other.TOML', 'other.TOML'), (None, 'approvals.toml')]
)
def test_a_file_in_toml_is_an_error_that_says_what_to_do(work, store, path, name, named):
    (work / name).write_text('mode = "strict"\n')

    mistake = mistake_in(path, directory=work, trust=store, named=named)

    assert mistake.source == f'{work}/{name}'
    stem = name.partition('.')[0]
    assert mistake.problem == f'TOML is not supported; write the same keys as YAML into `{stem}.yaml` instead'
    assert str(mistake) == f'{work}/{name}: {mistake.problem}'


def test_a_missing_file_is_an_error(work, store):
    mistake = mistake_in(work / 'approvals.yaml', trust=store, named=True)

    assert str(mistake) == f'{work}/approvals.yaml: the file cannot be read: No such file or directory'


def test_a_path_with_a_nul_is_an_error(work, store):
    assert mistake_in('a\0b', directory=work, trust=store).problem == 'a path must not contain NUL'


@pytest.mark.parametrize('named', [True, False])
@pytest.mark.parametrize(
    ('make', 'problem'),
    [
        pytest.param(Path.mkdir, 'the path is not a regular file', id='a directory'),
        pytest.param(os.mkfifo, 'the path is not a regular file', id='a pipe, for which nothing waits'),
        pytest.param(
            lambda path: path.write_text('tools:\n' + '  a: {approval: none}\n' * 500_000),
            'the file is larger than 400000 bytes',
            id='ten megabytes of rules',
        ),
        pytest.param(
            lambda path: path.touch() or os.truncate(path, 10_000_000_000),
            'the file is larger than 400000 bytes',
            id='ten gigabytes, which are not read',
        ),
    ],
)
def test_something_other_than_a_file_of_a_reasonable_size_is_an_error(work, store, make, problem, named):
    make(work / 'approvals.yaml')

    path = work / 'approvals.yaml' if named else None
    assert mistake_in(path, directory=work, trust=store, named=named).problem == problem


def test_invalid_utf_8_is_an_error_with_its_line(work, store):
    (work / 'approvals.yaml').write_bytes(b'mode: strict\n# caf\xe9\n')

    mistake = mistake_in(None, directory=work, trust=store)

    assert (mistake.problem, mistake.line) == ('not UTF-8', 2)


def test_a_file_that_cannot_be_read_to_its_end_is_an_error(store):
    # Reading a process's own memory from its beginning fails.
    mistake = mistake_in('/proc/self/mem', trust=store, named=True)

    assert mistake.problem == 'the file cannot be read: Input/output error'

"""Real repositories, keys and signatures, made here."""

import os
import shutil
from pathlib import Path

import pytest

from maintainers.release.environments import run
from maintainers.release.tag import SIGNERS, problems
from maintainers.release.versions import LOOP_REQUIREMENT, PACKAGES

from .test_versions import CLOSED

TAG = 'v0.1.0'
pytestmark = pytest.mark.skipif(shutil.which('ssh-keygen') is None, reason='signs with ssh-keygen, of OpenSSH')


def key(folder: Path, name: str) -> Path:
    run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', folder / name)
    return folder / name


def sign(root: Path, by: Path, tag: str = TAG) -> None:
    run('git', '-c', 'gpg.format=ssh', '-c', f'user.signingKey={by}', 'tag', '-s', '-m', tag, tag, cwd=root)


def commit(root: Path) -> None:
    run('git', 'add', '.', cwd=root)
    run('git', 'commit', '--quiet', '--no-gpg-sign', '--message', 'Change', cwd=root)


@pytest.fixture
def maintainer(tmp_path: Path) -> Path:
    return key(tmp_path, 'maintainer')


@pytest.fixture
def repository(tmp_path: Path, maintainer: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith('GIT_')]:
        monkeypatch.delenv(name)
    monkeypatch.setenv('GIT_CONFIG_GLOBAL', os.devnull)
    monkeypatch.setenv('GIT_CONFIG_NOSYSTEM', '1')
    root = tmp_path / 'repository'
    for file, text in {
        **dict.fromkeys(PACKAGES, "__version__ = '0.1.0'\n"),
        LOOP_REQUIREMENT: '"pydantic-ai-deferred-handler>=0.1.0,<0.2"',
        'CHANGELOG.md': CLOSED,
        SIGNERS: f'maintainer namespaces="git" {maintainer.with_suffix(".pub").read_text()}',
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    run('git', 'init', '--quiet', '--initial-branch', 'main', cwd=root)
    run('git', 'config', 'user.name', 'Maintainer', cwd=root)
    run('git', 'config', 'user.email', 'maintainer@example.org', cwd=root)
    commit(root)
    return root


def test_tag_signed_by_a_listed_key_may_be_released(repository: Path, maintainer: Path):
    sign(repository, maintainer)

    assert problems(repository, TAG, branch='main') == []


def test_tag_signed_by_another_key_may_not_be_released(repository: Path, tmp_path: Path):
    sign(repository, key(tmp_path, 'stranger'))

    assert problems(repository, TAG, branch='main') == [f'{TAG} is not signed by a key in {SIGNERS} of main.']


def test_a_tag_cannot_bring_its_own_list_of_keys(repository: Path, tmp_path: Path):
    stranger = key(tmp_path, 'stranger')
    run('git', 'checkout', '--quiet', '-b', 'aside', cwd=repository)
    (repository / SIGNERS).write_text(f'stranger namespaces="git" {stranger.with_suffix(".pub").read_text()}')
    commit(repository)
    sign(repository, stranger)

    assert problems(repository, TAG, branch='main') == [
        f'{TAG} is not on main.',
        f'{TAG} is not signed by a key in {SIGNERS} of main.',
    ]


@pytest.mark.parametrize(
    ('options', 'problem'),
    [((), 'is not an annotated tag'), (('--annotate', '--message', 'Release'), 'has no SSH signature')],
)
def test_tag_without_a_signature_may_not_be_released(repository: Path, options: tuple[str, ...], problem: str):
    run('git', 'tag', '--no-sign', *options, TAG, cwd=repository)

    (found,) = problems(repository, TAG, branch='main')
    assert problem in found


def test_without_a_list_of_keys_no_tag_may_be_released(repository: Path, maintainer: Path):
    (repository / SIGNERS).unlink()
    commit(repository)
    sign(repository, maintainer)

    assert problems(repository, TAG, branch='main') == [f'main has no {SIGNERS} with the allowed signers.']


@pytest.mark.parametrize('name', ['', '--help', "v0.1.0';id;'", 'v0.1.0-$(id)'])
def test_name_that_is_not_a_version_is_not_passed_to_a_command(repository: Path, name: str):
    assert problems(repository, name, branch='main') == [f'The packages are 0.1.0, and the tag is {name!r}.']


def test_tag_of_another_version_may_not_be_released(repository: Path, maintainer: Path):
    sign(repository, maintainer, 'v0.2.0')

    assert problems(repository, 'v0.2.0', branch='main') == ["The packages are 0.1.0, and the tag is 'v0.2.0'."]


def test_tree_that_differs_from_the_tag_may_not_be_released(repository: Path, maintainer: Path):
    sign(repository, maintainer)
    (repository / 'new.txt').write_text('new')
    run('git', 'commit', '--quiet', '--no-gpg-sign', '--allow-empty', '--message', 'Later', cwd=repository)

    assert problems(repository, TAG, branch='main') == [
        f'{TAG} is not checked out.',
        'The tree has changes that are not in the tag.',
    ]


def test_missing_tag_may_not_be_released(repository: Path):
    assert problems(repository, TAG, branch='main') == [f"There is no tag '{TAG}'."]


def test_tag_with_an_open_changelog_may_not_be_released(repository: Path, maintainer: Path):
    (repository / 'CHANGELOG.md').write_text(CLOSED.replace('## [Unreleased]\n', '## [Unreleased]\n\n- More.\n'))
    commit(repository)
    sign(repository, maintainer)

    assert problems(repository, TAG, branch='main') == ['CHANGELOG.md has entries under Unreleased.']

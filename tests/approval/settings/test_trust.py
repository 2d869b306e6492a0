"""Trust is kept in one file of the user; if anything is odd about this file, nothing is trusted."""

import json
import os
import stat
from datetime import UTC, datetime

import pytest
from tool_approval.settings import TrustedFile, TrustError, TrustStore

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DIGEST, OTHER = 'a' * 64, 'b' * 64


@pytest.fixture
def store(tmp_path):
    return TrustStore(tmp_path / 'state' / 'trusted.json', now=lambda: NOW)


@pytest.fixture
def policy(tmp_path):
    (tmp_path / 'work').mkdir()
    return tmp_path / 'work' / 'approvals.yaml'


def test_nothing_is_trusted_at_first(store, policy):
    assert not store.is_trusted(policy, DIGEST)
    assert store.why_untrusted(policy, DIGEST) == 'the user has not trusted the file'
    assert store.list_all() == []
    assert not store.path.exists()


def test_a_file_is_trusted_with_its_bytes_at_its_path(store, policy):
    store.trust(policy, DIGEST)

    assert store.is_trusted(policy, DIGEST)
    assert store.why_untrusted(policy, OTHER) == 'the file has changed since it was trusted'
    assert store.why_untrusted(policy.with_name('approvals.yml'), DIGEST) == 'the user has not trusted the file'
    assert store.list_all() == [TrustedFile(path=str(policy), digest=DIGEST, trusted_at=NOW)]


def test_trust_in_new_bytes_ends_the_trust_in_the_old(store, policy):
    store.trust(policy, DIGEST)
    store.trust(policy, OTHER)

    assert not store.is_trusted(policy, DIGEST)
    assert store.is_trusted(policy, OTHER)


def test_trust_can_be_revoked(store, policy):
    store.trust(policy, DIGEST)

    assert store.revoke(policy) is True
    assert store.revoke(policy) is False
    assert not store.is_trusted(policy, DIGEST)


def test_trust_holds_under_another_path_to_the_folder(store, policy, tmp_path):
    (tmp_path / 'link').symlink_to('work')
    store.trust(policy, DIGEST)

    assert store.is_trusted(tmp_path / 'link' / 'approvals.yaml', DIGEST)


def test_trust_store_is_readable_only_by_the_user(store, policy):
    store.trust(policy, DIGEST)

    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def with_key(**key):
    """Change a key of the store, or add one."""
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **key}))


INVALID = 'the content is invalid'


@pytest.mark.parametrize(
    ('spoil', 'problem'),
    [
        pytest.param(lambda path: path.write_text('trust everything'), INVALID, id='text'),
        pytest.param(lambda path: path.write_bytes(b'\xff\xfe'), INVALID, id='bytes'),
        pytest.param(with_key(version=2), INVALID, id='another version'),
        pytest.param(with_key(all=True), INVALID, id='an unknown key'),
        pytest.param(
            lambda path: path.write_text(path.read_text().replace('"path"', '"folder"')), INVALID, id='another shape'
        ),
        pytest.param(lambda path: os.truncate(path, 4_194_305), 'larger than 4194304 bytes', id='too long'),
        pytest.param(
            lambda path: path.chmod(0o644),
            'others can access the file (mode 0644); run: chmod 600',
            id='open to others',
        ),
        pytest.param(
            lambda path: path.symlink_to(path.rename(path.with_name('other'))),
            'the file is a symbolic link',
            id='a symbolic link',
        ),
        pytest.param(
            lambda path: os.link(path, path.with_name('other')),
            'the file has more than one name (a hard link)',
            id='a hard link',
        ),
        pytest.param(lambda path: path.unlink() or path.mkdir(), 'the path is not a regular file', id='a folder'),
    ],
)
def test_an_odd_store_trusts_nothing_and_reports_why(store, policy, spoil, problem):
    store.trust(policy, DIGEST)

    spoil(store.path)

    assert not store.is_trusted(policy, DIGEST)
    assert problem in store.why_untrusted(policy, DIGEST)
    assert 'no file is trusted' in store.why_untrusted(policy, DIGEST)
    for action in (store.list_all, lambda: store.revoke(policy), lambda: store.trust(policy, DIGEST)):
        with pytest.raises(TrustError, match='no file is trusted'):
            action()


@pytest.mark.skipif(os.getuid() != 0, reason='only root can give a file away')
def test_store_of_another_user_trusts_nothing(store, policy):
    store.trust(policy, DIGEST)

    os.chown(store.path, 65534, 65534)

    assert 'the file belongs to another user (id 65534)' in store.why_untrusted(policy, DIGEST)


def test_a_store_beside_the_file_trusts_nothing(policy):
    store = TrustStore(policy.parent / 'state' / 'trusted.json')

    with pytest.raises(TrustError, match='the store is in the folder of the settings file'):
        store.trust(policy, DIGEST)
    assert 'move the store elsewhere' in store.why_untrusted(policy, DIGEST)


def test_a_store_that_a_link_puts_beside_the_file_trusts_nothing(policy, tmp_path):
    (tmp_path / 'state').symlink_to('work')

    assert 'move the store elsewhere' in TrustStore(tmp_path / 'state' / 'trusted.json').why_untrusted(policy, DIGEST)


def test_store_in_a_folder_that_others_can_write_is_refused(store, policy):
    store.path.parent.mkdir()
    store.path.parent.chmod(0o777)

    with pytest.raises(TrustError, match='other users can write to the folder'):
        store.trust(policy, DIGEST)
    assert list(store.path.parent.iterdir()) == []


@pytest.mark.parametrize(('name', 'digest'), [('a', 'short'), ('a', DIGEST.upper()), ('\udcff', DIGEST)])
def test_path_or_digest_that_cannot_be_stored_is_not_trusted(store, policy, name, digest):
    with pytest.raises(TrustError, match='cannot be stored; nothing was changed'):
        store.trust(policy.with_name(name), digest)
    assert not store.path.exists()


def test_failed_write_changes_no_trust(store, policy, monkeypatch):
    store.trust(policy, DIGEST)

    def fail(path, content):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('tool_approval.settings.trust.replace_private', fail)

    with pytest.raises(TrustError, match='No space left on device; nothing was changed'):
        store.trust(policy, OTHER)
    assert store.is_trusted(policy, DIGEST)

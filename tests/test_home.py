"""Whatever the user has in the home, no test reads it, writes it, or depends on it."""

import hashlib
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tool_approval.core.protocols import RememberedApproval
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.settings import TrustStore, load_settings, trust_settings
from tool_approval.storage import FileApprovalStore, default_path

from tests import home

ROOT = Path(__file__).parents[1]
TOUCHING = (
    'tests/approval/cli/test_memory.py',
    'tests/approval/cli/test_trust.py',
    'tests/approval/integrations/pydantic_ai/test_ledger.py::test_a_remembered_approval_that_was_revoked',
    'tests/approval/settings/test_trust.py',
    'tests/approval/storage/test_file_store.py',
)
"""Tests of what is remembered, set and trusted, among them those that once wrote into the user's home."""


def written(folder):
    """The mode, the time and the content of everything in a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
        )
        for path in (folder, *folder.rglob('*'))
    }


@pytest.fixture
def outer(own_home):
    """The home of a user who has remembered approvals, settings that are trusted, and a file of git's."""
    project = own_home / 'project'
    project.mkdir()
    store = FileApprovalStore(project)
    for digit, tool in enumerate(('pay', 'delete')):
        store.put(
            RememberedApproval(
                id=f'{digit}' * 64, tool_name=tool, kind='exact', label=tool, approved_at=datetime.now(UTC)
            )
        )
    (project / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')
    trust_settings(load_settings(directory=project), TrustStore())
    (own_home / '.gitconfig').write_text('[user]\n\tuseConfigOnly = true\n')
    return own_home


def test_all_that_a_user_has_is_looked_for_in_an_empty_home():
    place = Path.home()

    assert all(Path(os.environ[variable]).is_relative_to(place) for variable in home.FOLDERS)
    stores = (default_path(), TrustStore().path, SQLiteStore().path)
    assert all(each.is_relative_to(place) for each in stores)
    assert [path for path in place.rglob('*') if not path.is_dir()] == []


@pytest.mark.thorough
def test_tests_pass_in_a_home_with_approvals_settings_and_trust_and_leave_it_as_it_is(outer, tmp_path):
    before = written(outer)

    emptiness = f'{__file__}::{test_all_that_a_user_has_is_looked_for_in_an_empty_home.__name__}'
    command = [
        sys.executable,
        '-m',
        'pytest',
        '-q',
        '-m',
        'not slow',
        '--basetemp',
        tmp_path / 'nested',
        emptiness,
        *TOUCHING,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stdout
    assert written(outer) == before
    names = {Path(name).name for name in before}
    assert names >= {'approvals.json', 'trusted.json', 'approvals.yaml', '.gitconfig'}

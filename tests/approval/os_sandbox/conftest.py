"""A place to confine commands in, for root and for an ordinary user."""

import shutil
import tempfile
from pathlib import Path

import pytest

from .house import BWRAP, House, skip_reason


@pytest.fixture(params=['root', 'ordinary'])
def house(request: pytest.FixtureRequest):
    reason = skip_reason(request.param)
    if reason:
        pytest.skip(reason)
    # Not `tmp_path`: an ordinary user may not pass through root's folder of temporary files.
    folder = tempfile.mkdtemp(prefix='os-sandbox-')
    try:
        yield House(folder, user=request.param)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def places(house: House, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files in the house, where the house's user may make them."""
    folder = house.path / 'temporary'
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(tempfile, 'tempdir', str(folder))
    return folder


@pytest.fixture
def bwrap():
    if not shutil.which('bwrap') or not BWRAP.is_file():
        pytest.skip('bubblewrap is not installed: make install-system')
    return str(BWRAP)

"""A place to confine commands in, for root and for an ordinary user."""

import shutil
import tempfile

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
def bwrap():
    if not BWRAP.is_file():
        pytest.skip('bubblewrap is not installed: make install-system')
    return str(BWRAP)

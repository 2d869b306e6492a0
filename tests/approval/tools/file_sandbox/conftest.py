import pytest

from tests.corpus.paths import make_world

from .world import World


@pytest.fixture
def world(tmp_path):
    """The corpus's folders: `notes` (suffixes, changes need approval), `cache` (free), `ref` (read-only), `priv`."""
    top = tmp_path.resolve()
    make_world(top)
    return World(top)

from collections.abc import Generator
from pathlib import Path

import pytest

from .talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Generator[Talk]:
    held = Talk(tmp_path)
    yield held
    held.close()

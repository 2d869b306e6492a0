from collections.abc import Generator
from pathlib import Path

import pytest

from .screen import Story


@pytest.fixture
def story(tmp_path: Path) -> Generator[Story]:
    told = Story(tmp_path)
    yield told
    told.screen.close()

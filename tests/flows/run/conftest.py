from collections.abc import Generator
from pathlib import Path

import pytest

from .scenario import Scenario
from .talk import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Generator[Talk]:
    held = Talk(tmp_path)
    yield held
    held.close()


@pytest.fixture
def scenario(talk: Talk) -> Scenario:
    return Scenario(talk)

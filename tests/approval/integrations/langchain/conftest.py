import pytest

from .scripted import Files, Runner


@pytest.fixture(params=['sync', 'async'])
def run(request: pytest.FixtureRequest) -> Runner:
    return Runner(is_async=request.param == 'async')


@pytest.fixture
def files() -> Files:
    return Files()

import asyncio
import warnings
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True)
def close_the_loop_run_sync_leaves() -> Generator[None]:
    """The host's `run_sync` makes an event loop where there is none, and leaves it open for the next call."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        try:
            loop = asyncio.get_event_loop_policy().get_event_loop()
        except RuntimeError:
            return
    loop.close()
    asyncio.set_event_loop(None)

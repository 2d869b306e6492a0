"""However a large request is made, little is done to draw it. How long that takes is a page of the documentation."""

import sys
from collections.abc import Callable

from tool_approval.ui.terminal import render_request

from benchmarks.terminal import requests
from tests.tables import table

MOST_CALLS = 800_000
"""Twice what the slowest of them needs. Calls are counted, as a busy machine needs longer for them."""

REQUESTS = requests()


def calls_of(function: Callable[[], object]) -> int:
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ('call', 'c_call')

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@table('name', REQUESTS)
def test_little_is_done_to_draw_a_large_request(name: str) -> None:
    calls = calls_of(lambda: render_request(REQUESTS[name]))

    assert 100 < calls < MOST_CALLS

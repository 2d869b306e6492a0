"""However a large request is made, little is done to draw it. How long that takes is a page of the documentation."""

import sys
from collections.abc import Callable
from functools import partial

from tool_approval.ui.terminal import render_request

from benchmarks.terminal import requests

MOST_CALLS = 800_000
"""Twice what the slowest of them needs. Calls are counted, as a busy machine needs longer for them."""


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


def test_little_is_done_to_draw_a_large_request() -> None:
    calls = {name: calls_of(partial(render_request, request)) for name, request in requests().items()}

    assert {name: count for name, count in calls.items() if not 100 < count < MOST_CALLS} == {}

import asyncio

import pytest
from slack_sdk.http_retry import HttpRequest, HttpResponse, RetryState
from tool_approval.ui.slack.channel import RateLimits

REQUEST = HttpRequest(method='POST', url='http://slack.invalid', headers={})


def wait(headers, status=429, attempt=0):
    """The seconds before the next attempt; `None` if there is none."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def main():
        limits, state = RateLimits(sleep), RetryState(current_attempt=attempt)
        response = HttpResponse(status_code=status, headers=headers)
        if await limits.can_retry_async(state=state, request=REQUEST, response=response):
            await limits.prepare_for_next_attempt_async(state=state, request=REQUEST, response=response)
            assert (state.next_attempt_requested, state.current_attempt) == (True, attempt + 1)

    asyncio.run(main())
    return slept[0] if slept else None


@pytest.mark.parametrize(
    ('headers', 'seconds'),
    [
        ({'Retry-After': '30'}, 30),
        ({'retry-after': ['2']}, 2),
        ({}, 5),
        ({'Retry-After': 'soon'}, 5),
        ({'Retry-After': '-1'}, 5),
        ({'Retry-After': []}, 5),
        ({'X-Other': '9', 'Retry-After': '1'}, 1),
        ({'Retry-After': '121'}, None),
        ({'Retry-After': '9' * 5000}, None),
    ],
)
def test_wait_follows_retry_after_within_limits(headers, seconds):
    assert wait(headers) == seconds


def test_other_failures_are_not_tried_again_as_they_may_have_been_carried_out():
    assert wait({'Retry-After': '1'}, status=503) is None


def test_no_wait_after_the_fifth_attempt():
    assert (wait({}, attempt=4), wait({}, attempt=5)) == (5, None)

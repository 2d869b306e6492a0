import pytest
from starlette.exceptions import HTTPException
from tool_approval.inbox import InboxUntrusted, InvalidAnswer
from tool_approval.ui.web.refusals import refusal_of


@pytest.mark.parametrize(
    ('error', 'status', 'code', 'message'),
    [
        (InvalidAnswer('no'), 422, 'invalid_answer', 'the answer is invalid: no'),
        (HTTPException(406, 'secret'), 406, 'refused', 'the request was refused'),
        (InboxUntrusted('/secret', 'it is not ours'), 503, 'unavailable', 'the inbox cannot be reached'),
    ],
)
def test_refusal_shows_no_details_of_the_error(error, status, code, message):
    refusal = refusal_of(error)

    assert (refusal.status, refusal.code) == (status, code)
    assert refusal.message.startswith(message)
    assert 'secret' not in refusal.message

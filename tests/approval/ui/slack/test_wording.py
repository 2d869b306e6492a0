import pytest
from tool_approval.inbox import (
    AlreadySettled,
    InboxUnavailable,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
    UnknownRequest,
    refusal_text,
)
from tool_approval.ui.slack.mrkdwn import code, plain

from .slack_server import active


@pytest.mark.parametrize(
    ('error', 'told'),
    [
        (AlreadySettled('withdrawn'), 'too late: the request is already withdrawn.'),
        (AlreadySettled('denied', by='<!here>'), 'already denied by `&lt;!here&gt;`.'),
        (NotAnApprover('U1', 't', 'it is <their> own'), 'You may not answer this request: it is &lt;their&gt; own.'),
        (OtherContent(), 'has changed since you saw it'),
        (UnknownRequest(), 'no longer in the inbox'),
        (InboxUnavailable('a file', 'full'), 'cannot be reached. Your answer may not have been recorded'),
        (InvalidAnswer('x'), 'does not offer this answer'),
    ],
)
def test_refusal_names_its_reason(error, told):
    text = refusal_text(error, name=code, text=plain)

    assert told in text
    assert active(text) == []

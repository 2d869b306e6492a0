import pickle
from datetime import UTC, datetime

import pytest
from tool_approval.answering import NotOffered
from tool_approval.inbox import (
    AlreadySettled,
    AnswerRefused,
    InboxError,
    InboxUnavailable,
    InboxUntrusted,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
    RequestTooLarge,
    UnknownRequest,
    refusal_text,
)

from tool_approval import ApprovalError

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REFUSED = [
    (UnknownRequest(), 'there is no such request in the inbox'),
    (AlreadySettled('expired'), 'the request is no longer open: it was expired'),
    (
        AlreadySettled('denied', by='a\nb', at=AT),
        "the request is no longer open: it was denied by 'a\\nb' at 2026-01-02T03:04:05+00:00",
    ),
    (OtherContent(), 'the answer is to something else than what the request shows; load it again and decide anew'),
    (NotAnApprover('ada', 'rm', 'they are not listed'), "'ada' may not answer for 'rm': they are not listed"),
    (InvalidAnswer('it is malformed'), 'this is no answer to the request: it is malformed'),
]
OTHERS = [
    (RequestTooLarge(5, 4), 'the request has 5 bytes, and the inbox takes 4; present less of it'),
    (InboxUnavailable('here', 'it is closed'), 'the inbox in here is unavailable: it is closed'),
    (InboxUntrusted('here', 'it is a link'), 'the inbox in here cannot be used: it is a link'),
]


@pytest.mark.parametrize(('error', 'sentence'), REFUSED + OTHERS)
def test_each_says_what_happened_and_survives_pickling(error, sentence):
    copy = pickle.loads(pickle.dumps(error))

    assert (str(error), str(copy)) == (sentence, sentence)
    assert vars(copy) == vars(error)


def test_they_stand_in_the_tree_that_is_drawn():
    assert all(isinstance(error, AnswerRefused) for error, _ in REFUSED)
    assert not any(isinstance(error, AnswerRefused) for error, _ in OTHERS)
    assert all(isinstance(error, InboxError) for error, _ in REFUSED + OTHERS)
    assert issubclass(InboxError, ApprovalError)


@pytest.mark.parametrize(
    ('error', 'told'),
    [
        (AlreadySettled('withdrawn'), 'Your answer came too late: the request was withdrawn.'),
        (
            AlreadySettled('denied', by='eve\n', at=AT),
            'Your answer came too late: the request was denied by eve<U+000A> at 03:04:05 UTC.',
        ),
        (
            NotAnApprover('eve', 't', 'they are not listed'),
            'You may not answer this request: they are not listed. Nothing was changed.',
        ),
        (OtherContent(), 'The request shows something else by now. Nothing was changed; look at it again.'),
        (UnknownRequest(), 'There is no such request in the inbox any more. Nothing was changed.'),
        (InvalidAnswer('x'), 'The request does not offer this answer. Nothing was changed.'),
        (NotOffered('x'), 'The request does not offer this answer. Nothing was changed.'),
        (
            InboxUnavailable('a file', 'full'),
            'The inbox cannot be reached, so your answer may not have been taken. Look again in a moment.',
        ),
    ],
)
def test_whoever_answered_reads_why_it_did_not_count(error, told):
    assert refusal_text(error) == told

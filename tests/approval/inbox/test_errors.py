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
    (AlreadySettled('withdrawn'), 'the request is no longer open: withdrawn'),
    (
        AlreadySettled('expired'),
        'the request is no longer open: expired; an answer after the deadline does not count',
    ),
    (
        AlreadySettled('denied', by='a\nb', at=AT),
        "the request is no longer open: denied by 'a\\nb' at 2026-01-02T03:04:05+00:00",
    ),
    (OtherContent(), 'the answer does not match the request; load the request again and decide again'),
    (
        NotAnApprover('ada', 'rm', 'only listed approvers may answer'),
        "'ada' may not answer a request for 'rm': only listed approvers may answer",
    ),
    (InvalidAnswer('the decision is malformed'), 'the answer is invalid: the decision is malformed'),
]
OTHERS = [
    (
        RequestTooLarge(5, 4),
        'the request has 5 bytes, more than the limit of 4; shorten its arguments or presentation',
    ),
    (InboxUnavailable('here', 'the store is closed'), 'the inbox in here is unavailable: the store is closed'),
    (InboxUntrusted('here', 'it is a link'), 'the inbox in here cannot be used: it is a link'),
]


@pytest.mark.parametrize(('error', 'sentence'), REFUSED + OTHERS)
def test_each_error_has_its_sentence_and_survives_pickling(error, sentence):
    copy = pickle.loads(pickle.dumps(error))

    assert (str(error), str(copy)) == (sentence, sentence)
    assert vars(copy) == vars(error)


def test_errors_have_the_documented_base_classes():
    assert all(isinstance(error, AnswerRefused) for error, _ in REFUSED)
    assert not any(isinstance(error, AnswerRefused) for error, _ in OTHERS)
    assert all(isinstance(error, InboxError) for error, _ in REFUSED + OTHERS)
    assert issubclass(InboxError, ApprovalError)


@pytest.mark.parametrize(
    ('error', 'told'),
    [
        (AlreadySettled('withdrawn'), 'Your answer came too late: the request is already withdrawn.'),
        (
            AlreadySettled('denied', by='eve\n', at=AT),
            'Your answer came too late: the request is already denied by eve<U+000A> at 03:04:05 UTC.',
        ),
        (
            NotAnApprover('eve', 't', 'only listed approvers may answer'),
            'You may not answer this request: only listed approvers may answer. Nothing was changed.',
        ),
        (
            OtherContent(),
            'The request has changed since you saw it. Your answer was not accepted; load the request again.',
        ),
        (UnknownRequest(), 'The request is no longer in the inbox. Nothing was changed.'),
        (InvalidAnswer('x'), 'The request does not offer this answer. Nothing was changed.'),
        (NotOffered('x'), 'The request does not offer this answer. Nothing was changed.'),
        (
            InboxUnavailable('a file', 'full'),
            'The inbox cannot be reached. Your answer may not have been recorded; check again in a moment.',
        ),
    ],
)
def test_refused_answer_is_explained_to_the_approver(error, told):
    assert refusal_text(error) == told

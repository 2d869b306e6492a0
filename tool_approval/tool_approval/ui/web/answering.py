"""From what was sent to an answer in the inbox; the page and the API go through here."""

from __future__ import annotations

from tool_approval.core.decision import ApprovalDecision
from tool_approval.display import is_shown_whole
from tool_approval.inbox import Approver, Inbox, InboxEntry

from .offers import editable, offer_of, with_arguments
from .refusals import Refusal
from .view import DecisionBody


async def answer(inbox: Inbox, request_id: str, body: DecisionBody, visitor: Approver) -> InboxEntry:
    """Answer a request.

    Raises:
        Refusal: The page did not offer that.
        InboxError: See `Inbox.decide`.
    """
    entry = await inbox.get(request_id)
    return await inbox.decide(request_id, _decision(entry, body), by=visitor, digest=body.digest)


async def check_group(inbox: Inbox, request_ids: list[str]) -> None:
    """Refuse to approve several requests together unless all of each is shown on the page.

    Raises:
        Refusal: One is not.
        InboxError: One cannot be read.
    """
    for request_id in request_ids:
        if not is_shown_whole((await inbox.get(request_id)).request):
            raise Refusal(422, 'invalid_answer', 'one of them is not shown whole, so approve them one by one')


def _decision(entry: InboxEntry, body: DecisionBody) -> ApprovalDecision:
    request = entry.request
    offer = offer_of(request) if body.remember != 'none' else None
    if offer is not None:
        if not body.approved or body.override_args is not None:
            raise Refusal(422, 'invalid_answer', 'only an approval of the arguments as they are can be remembered')
        if body.remember not in offer.spans:
            raise Refusal(422, 'invalid_answer', f'it cannot be remembered for {body.remember!r}')
        if body.remember_option not in dict(offer.choices):
            raise Refusal(422, 'invalid_answer', 'what it is to be remembered for was not offered')
    override = body.override_args
    if override is not None:
        if not body.approved:
            raise Refusal(422, 'invalid_answer', 'a denial changes no arguments')
        kept = set(request.args) - set(editable(request))
        if kept & set(override):
            raise Refusal(422, 'invalid_answer', 'an argument that is not shown cannot be changed')
        override = dict(with_arguments(request, override).args)
    return ApprovalDecision(
        approved=body.approved,
        note=body.note or None,
        override_args=override,
        remember=body.remember,
        remember_option=body.remember_option,
    )

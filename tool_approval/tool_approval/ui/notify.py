"""Notify approvers through Apprise: by mail, push notification or chat."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tool_approval.core.decision import ApprovalDecision
from tool_approval.core.errors import MissingExtraError
from tool_approval.inbox import Approver, InboxEntry, NotAnApprover

try:
    from apprise import Apprise, AppriseAsset, NotifyFormat
except ImportError:
    raise MissingExtraError('apprise', extra='notify') from None


class AppriseChannel:
    """A channel that sends an approver a link to each request they may answer, and its outcome if others settle it.

    A notification contains a link and the outcome with the names of approvers, and nothing else of the request.
    """

    def __init__(self, url: str, approver: Approver, link_to: Callable[[InboxEntry, Approver], str]) -> None:
        """Notify an approver.

        Args:
            url: Apprise URL of one place, such as `ntfys://ntfy.example/topic`. See https://appriseit.com/services/
            approver: Approver to notify.
            link_to: Function that makes the link, such as `Links.make`. It is called in a thread.

        Raises:
            ValueError: Apprise does not know this URL.
        """
        # Apprise logs what it sends, and the text contains the link.
        logging.getLogger('apprise').disabled = True
        # The library's types are partial.
        self._apprise: Any = Apprise(asset=AppriseAsset(app_id='Approvals', async_mode=False))
        if not self._apprise.add(url):
            raise ValueError('Apprise does not know this URL')
        self._approver = approver
        self._link_to = link_to
        self._asked: set[str] = set()

    def posted(self, entry: InboxEntry) -> None:
        """Send the link, unless it was sent before.

        Raises:
            ConnectionError: The service did not accept the notification.
        """
        try:
            entry.check_approver(self._approver)
            entry.check_vote(self._approver, ApprovalDecision(approved=True))
        except NotAnApprover:
            return
        if entry.id in self._asked:  # others may answer now, too
            return
        self._asked.add(entry.id)
        link = self._link_to(entry, self._approver)
        self._send('Approval needed', f'An agent waits for an answer. The link is for you alone: {link}')

    def settled(self, entry: InboxEntry) -> None:
        """Send the outcome to an approver who was asked, and did not answer.

        Raises:
            ConnectionError: The service did not accept the notification.
        """
        is_asked = entry.id in self._asked
        self._asked.discard(entry.id)
        if is_asked and (entry.answer is None or entry.answer.by.id != self._approver.id):
            self._send('Request settled', f'{entry.outcome}.')

    def _send(self, title: str, text: str) -> None:
        if not self._apprise.notify(title=title, body=text, body_format=NotifyFormat.TEXT):
            raise ConnectionError('the service did not accept the notification')

"""What the tests of the page put together with."""

import asyncio
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode

from tool_approval.inbox import Approver, Inbox, InboxEntry

from tests.approval.parts import request_for
from tool_approval import ApprovalDecision, ApprovalRequest

ADA, BOB = Approver(id='ada', name='Ada'), Approver(id='bob', groups=frozenset({'ops'}))
PEOPLE = {'ada': ADA, 'bob': BOB}
HOST = 'approvals.test'
HOSTILE = '</textarea></script><script>alert(1)</script>"\'><img src=x onerror=alert(2)><!--{{7*7}}$base &lt;b&gt;'


class Desk:
    """An inbox and its page, for tests that say what each side does."""

    def __init__(self, inbox: Inbox, client):
        self.inbox = inbox
        self.client = client

    def post(self, request: ApprovalRequest | None = None, **content) -> InboxEntry:
        async def post():
            return await self.inbox.get(await self.inbox.post(request or request_for(), **content))

        return asyncio.run(post())

    def now(self, entry: InboxEntry) -> InboxEntry:
        return asyncio.run(self.inbox.get(entry.id))

    def settle(self, entry: InboxEntry, by: Approver = BOB, **decision) -> InboxEntry:
        said = ApprovalDecision(**{'approved': True, **decision})
        return asyncio.run(self.inbox.decide(entry.id, said, by=by, digest=entry.digest))

    def token(self) -> str:
        return self.client.get('/api/v1/session').json()['csrf_token']

    def form(self, path: str, fields=(), **more):
        """Send a form, as the page does."""
        pairs = [*(fields.items() if isinstance(fields, dict) else fields), ('csrf', self.token())]
        return self.client.post(
            path, content=encoded(pairs), headers={'content-type': FORM, **more}, follow_redirects=False
        )

    def answer(self, entry: InboxEntry, said: str = 'approve', **fields):
        return self.form(f'/requests/{entry.id}/answer', {'answer': said, 'digest': entry.digest, **fields})

    def decide(self, entry: InboxEntry, **body):
        given = {'digest': entry.digest, 'approved': True, **body}
        return self.client.post(
            f'/api/v1/requests/{entry.id}/decision', json=given, headers={'x-csrf-token': self.token()}
        )


FORM = 'application/x-www-form-urlencoded'


def encoded(pairs) -> str:
    return urlencode(list(pairs))


def text_of(page: str) -> str:
    """What a page says, without its markup."""
    body = page[page.index('<main') :]
    return ' '.join(unescape(re.sub(r'<[^>]*>', ' ', body)).split())


def error_of(response) -> tuple[int, str]:
    return response.status_code, response.json()['error']['code']


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

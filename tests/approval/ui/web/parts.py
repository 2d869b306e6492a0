"""The inbox and its page, for the tests of the page."""

import asyncio
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode

from starlette.testclient import TestClient
from tool_approval.inbox import Approver, Inbox, InboxEntry
from tool_approval.ui.web import inbox_app

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

    def send(self, path: str, fields=(), **headers):
        """Send these fields and no others."""
        sent = {'content-type': FORM, **headers}
        return self.client.post(path, content=urlencode(fields), headers=sent, follow_redirects=False)

    def form(self, path: str, fields=(), **headers):
        """Send a form with the token of the visitor, as the page does."""
        pairs = fields.items() if isinstance(fields, dict) else fields
        return self.send(path, [*pairs, ('csrf', self.token())], **headers)

    def answer(self, entry: InboxEntry, said: str = 'approve', **fields):
        return self.form(f'/requests/{entry.id}/answer', {'answer': said, 'digest': entry.digest, **fields})

    def answer_all(self, entries: list[InboxEntry], said: str = 'approve', accept: str = '*/*', **fields):
        items = [('item', f'{entry.id}.{entry.digest}') for entry in entries]
        return self.form('/answers', [*items, ('answer', said), *fields.items()], accept=accept)

    def decide(self, entry: InboxEntry, **body):
        given = {'digest': entry.digest, 'approved': True, **body}
        return self.client.post(
            f'/api/v1/requests/{entry.id}/decision', json=given, headers={'x-csrf-token': self.token()}
        )


FORM = 'application/x-www-form-urlencoded'


def client_of(inbox: Inbox, authenticate=lambda request: ADA, **settings) -> TestClient:
    """Ada, or whoever `authenticate` finds, at a page of this inbox with these settings."""
    return TestClient(inbox_app(inbox, authenticate=authenticate, hosts=[HOST], **settings), base_url=f'http://{HOST}')


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


def foreign_markup(page: str) -> list[str]:
    """What a page has beyond its one script: images, handlers, styles, and addresses elsewhere."""
    found = Tags()
    found.feed(page)
    scripts = found.tags.count('script')
    return [
        *([] if scripts == 1 else [f'{scripts} scripts']),
        *(tag for tag in found.tags if tag == 'img'),
        *(name for name, _ in found.attributes if name.startswith('on') or name == 'style'),
        *(v for name, v in found.attributes if name in ('href', 'src', 'action') and not v.startswith(('/', '#'))),
    ]

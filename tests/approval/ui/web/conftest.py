import pytest
from starlette.testclient import TestClient
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.web import inbox_app

from .parts import HOST, PEOPLE, Desk


@pytest.fixture
def inbox(tmp_path):
    with Inbox(SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')) as made:
        yield made


def named_by_header(request):
    """Stands in for a user's own login."""
    return PEOPLE.get(request.headers.get('x-user', ''))


@pytest.fixture
def desk(inbox):
    """Ada at the page."""
    app = inbox_app(inbox, authenticate=named_by_header, hosts=[HOST])
    return Desk(inbox, TestClient(app, base_url=f'http://{HOST}', headers={'x-user': 'ada'}))

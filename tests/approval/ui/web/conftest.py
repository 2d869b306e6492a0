import pytest
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

from .parts import PEOPLE, Desk, client_of


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
    client = client_of(inbox, named_by_header)
    client.headers['x-user'] = 'ada'
    return Desk(inbox, client)

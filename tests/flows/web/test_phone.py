"""A phone gets a link over ntfy, opens it without a login, and answers."""

import json
import re
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest

pytest.importorskip('apprise', reason='Apprise is not installed; CI installs it')

from playwright.sync_api import Page, expect
from tool_approval.inbox import Approver, notify_channel
from tool_approval.ui.notify import AppriseChannel

from tests.flows.web import requests

from .conftest import Site
from .test_stories import PHONE, axe


class Phone:
    """An ntfy server and the phone that listens to it."""

    def __init__(self, site: Site, approver: str, opened: Callable[..., Page]) -> None:
        self.messages: Queue[str] = Queue()
        self._opened = opened
        phone = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                phone.messages.put(json.loads(self.rfile.read(int(self.headers['content-length'])))['message'])
                self.send_response(200)
                self.send_header('content-length', '0')
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        url = f'ntfy://127.0.0.1:{self.server.server_address[1]}/{approver}?rto=20'
        channel = AppriseChannel(url, Approver(id=approver), site.links.make)
        site.run(notify_channel(site.inbox, channel))

    def open_link(self) -> Page:
        found = re.search(r'http://\S+$', self.messages.get(timeout=20))
        assert found is not None
        page = self._opened(**PHONE, color_scheme='dark')
        page.goto(found[0])
        return page


@pytest.fixture
def phone_of(
    site: Site, open_browser: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> Generator[Callable[[str], Phone]]:
    # The library's pause between two notifications.
    monkeypatch.setattr('apprise.plugins.base.NotifyBase.request_rate_per_sec', 0)
    made: list[Phone] = []

    def make(approver: str) -> Phone:
        made.append(Phone(site, approver, open_browser))
        return made[-1]

    yield make
    for phone in made:
        phone.server.shutdown()
        phone.server.server_close()


def test_a_run_goes_on_after_an_answer_on_a_phone_and_the_other_phone_learns_who_answered(
    site: Site, phone_of: Callable[[str], Phone]
) -> None:
    ada, bob = phone_of('ada'), phone_of('bob')
    asked = site.ask(requests.edit())

    late, page = bob.open_link(), ada.open_link()
    assert axe(page) == []
    assert page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')
    expect(page.get_by_text('buy oats')).to_be_visible()
    page.get_by_role('button', name='Approve edit_file', exact=True).click()

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.decided_by) == (True, ('ada',))
    expect(page.get_by_role('heading', name='Request settled')).to_be_visible()
    expect(page.locator('.outcome')).to_contain_text('Approved by ada')
    assert bob.messages.get(timeout=20) == 'Approved by ada.'
    late.get_by_role('button', name='Deny edit_file', exact=True).click()
    expect(late.locator('.outcome')).to_contain_text('Approved by ada')
    assert ada.messages.empty()

"""A page on a real server, a real browser, and runs that wait."""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('playwright', reason='Playwright is not installed; CI installs it')

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from tool_approval.inbox import Approver, Inbox, InboxUI
from tool_approval.inbox.store import InboxStore
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.ui.web import Links, LocalLogin, inbox_app
from tool_approval.ui.web.serving import listen

from tests.home import furnish
from tests.postgres_server import PostgresServer, postgres
from tool_approval import ApprovalController, ApprovalDecision, ApprovalRequest

__all__ = ('postgres',)

CHROMIUM = shutil.which('chromium')
SLOWEST_MS = 10_000


@pytest.fixture(scope='module')
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    if CHROMIUM is None:
        pytest.skip('Debian’s Chromium is not installed: make install-system')
    root = ['--no-sandbox'] if os.geteuid() == 0 else []
    environment: dict[str, str | float | bool] = {**os.environ, **furnish(tmp_path_factory.mktemp('home'))}
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=root, env=environment)
        yield opened
        opened.close()


class Site:
    """The page, served by a thread, and the inbox behind it."""

    def __init__(self, make_store: Callable[[], InboxStore]) -> None:
        self.inbox = Inbox(make_store())
        self.login = LocalLogin()
        self._listening = listen('127.0.0.1', 0)
        self.host = f'127.0.0.1:{self._listening.getsockname()[1]}'
        self.links = Links(f'http://{self.host}')
        app = inbox_app(self.inbox, authenticate=self.login, hosts=[self.host], links=self.links)
        config = uvicorn.Config(
            app, log_config=None, log_level='critical', lifespan='off', ws='none', timeout_graceful_shutdown=1
        )
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, kwargs={'sockets': [self._listening]})
        self._loop = asyncio.new_event_loop()
        self._runs = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._runs.start()
        # The agent's side: an inbox of its own on the same store, as in another process.
        self.agents = Inbox(make_store())
        self.controller = ApprovalController(policy={'*': {'approval': 'required'}}, ui=InboxUI(self.agents))

    def link(self, approver: str = 'ada') -> str:
        return f'http://{self.host}/?token={self.login.ticket(Approver(id=approver))}'

    def ask(self, *requests: ApprovalRequest, controller: ApprovalController | None = None) -> Future[Any]:
        """Let a run ask; its decisions, once there are."""
        asking = (controller or self.controller).request_approvals(requests)
        return asyncio.run_coroutine_threadsafe(asking, self._loop)

    def run(self, running: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Let an agent run; its result, once there is one."""
        return asyncio.run_coroutine_threadsafe(running, self._loop)

    def post(self, request: ApprovalRequest) -> str:
        """Post a request for which no run waits here."""
        return asyncio.run_coroutine_threadsafe(self.agents.post(request), self._loop).result(timeout=20)

    def decisions(self, asked: Future[Any]) -> list[ApprovalDecision]:
        return asked.result(timeout=20)

    def close(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            self._loop.call_soon_threadsafe(task.cancel)
        self.server.should_exit = True
        self._thread.join()
        self.agents.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._runs.join()
        self._loop.close()
        self.inbox.close()
        self._listening.close()


@pytest.fixture
def site(tmp_path: Path) -> Generator[Site]:
    made = Site(lambda: SQLiteStore(tmp_path / 'state' / 'inbox.sqlite'))
    yield made
    made.close()


@pytest.fixture
def site_on_postgres(postgres: PostgresServer) -> Generator[Site]:
    from tool_approval.inbox.stores.postgres import PostgresStore

    database = postgres.new_database()
    made = Site(lambda: PostgresStore(database))
    yield made
    made.close()


@pytest.fixture
def visit(browser: Browser, site: Site) -> Generator[Callable[..., Page]]:
    """Opens the page in a browser of its own; no error may appear in its console."""
    with _visits(browser) as opened:
        yield partial(_visit, opened, site)


@pytest.fixture
def open_browser(browser: Browser) -> Generator[Callable[..., Page]]:
    """Opens a browser without a login; no error may appear in its console."""
    with _visits(browser) as opened:
        yield opened


@pytest.fixture
def visit_on_postgres(browser: Browser, site_on_postgres: Site) -> Generator[Callable[..., Page]]:
    """The same at the other site."""
    with _visits(browser) as opened:
        yield partial(_visit, opened, site_on_postgres)


def _visit(opened: Callable[..., Page], site: Site, approver: str = 'ada', **settings: Any) -> Page:
    page = opened(**settings)
    page.goto(site.link(approver))
    return page


@contextmanager
def _visits(browser: Browser) -> Generator[Callable[..., Page]]:
    contexts = []
    complaints: list[str] = []

    def opened(**settings: Any) -> Page:
        context = browser.new_context(**{'locale': 'en-GB', 'timezone_id': 'UTC', **settings})
        context.set_default_timeout(SLOWEST_MS)
        contexts.append(context)
        page = context.new_page()
        page.on('pageerror', lambda error: complaints.append(str(error)))
        page.on(
            'console',
            lambda said: complaints.append(said.text) if 'Content Security Policy' in said.text else None,
        )
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []

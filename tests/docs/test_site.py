"""Links and navigation resolve, and the built site needs nothing from elsewhere and finds its pages."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown.extensions.toc import slugify

from .blocks import PAGES, ROOT

DOCS = ROOT / 'docs'
_CODE = re.compile(r'^```.*?^```|`[^`\n]*`', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r'\]\(([^)\s]+)\)')
_HEADING = re.compile(r'^#+ (.+)$', re.MULTILINE)
SUBJECTS = {
    'approve': 'tutorial-approval.html',
    'timeout': 'how-to/timeouts.html',
    'MCP': 'how-to/mcp.html',
    'streaming': 'how-to/streaming.html',
    'sandbox': 'how-to/os-sandbox.html',
    'Slack': 'how-to/slack.html',
    'phone': 'how-to/phone.html',
}
"""Words that a reader searches for, and the page that answers."""


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub('', page.read_text()))


def test_every_table_has_a_separator_below_its_header_and_as_many_cells_in_each_row():
    tables = re.compile(r'(?:^\|.*\n)+', re.MULTILINE)
    for page in PAGES:
        for table in tables.findall(_CODE.sub('x', page.read_text())):
            header, separator, *rows = table.splitlines()
            assert re.fullmatch(r'\|( *:?-+:? *\|)+', separator), f'{page.name}: {header}'
            cells = {line.count('|') - line.count(r'\|') for line in (header, separator, *rows)}
            assert len(cells) == 1, f'{page.name}: {header}'


def anchors_of(page: Path) -> set[str]:
    return {slugify(heading.replace('`', ''), '-') for heading in _HEADING.findall(page.read_text())}


def pages_of(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        (target,) = entry.values()
        if isinstance(target, str):
            yield target
        else:
            yield from pages_of(target)


def navigation() -> list[str]:
    return list(pages_of(yaml.safe_load((ROOT / 'mkdocs.yml').read_text())['nav']))


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in links_of(page):
        if re.match(r'[a-z]+:', link):
            continue
        target, _, anchor = link.partition('#')
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            broken.append(link)

    assert broken == []


def test_every_entry_of_the_navigation_is_a_page() -> None:
    assert [entry for entry in navigation() if not (DOCS / entry).is_file()] == []


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(str(page.relative_to(DOCS)) for page in DOCS.glob('**/*.md'))

    assert sorted(navigation()) == pages


class _Requests(HTMLParser):
    """Collects what a browser fetches when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in ('audio', 'embed', 'iframe', 'img', 'input', 'script', 'source', 'track', 'video'):
            self.fetched.append(attributes.get('src') or '')
        elif tag == 'link':
            self.fetched.append(attributes.get('href') or '')


@pytest.fixture(scope='module')
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly."""
    folder = tmp_path_factory.mktemp('site')
    built = subprocess.run(
        [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(folder)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.thorough  # `make docs` builds it
def test_the_built_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    requests = _Requests()
    for page in site.glob('**/*.html'):
        requests.feed(page.read_text())
    assert any(request.endswith('.css') for request in requests.fetched)
    assert [request for request in requests.fetched if re.match(r'([a-z]+:)?//', request)] == []
    listed = links_of(site / 'llms.txt')
    assert 'how-to/handlers.html' in listed
    assert [link for link in listed if not (site / link).is_file()] == []
    styles = [style for style in site.glob('**/*.css') if re.search(r'url\(["\']?(https?:)?//', style.read_text())]
    assert styles == []


class _Served(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope='module')
def address(site: Path) -> Generator[str]:
    """The address at which the site is served."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), partial(_Served, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures('own_home')  # the browser keeps things there
@pytest.mark.thorough  # it needs the built site
def test_a_search_finds_the_page_on_the_subject_first(address: str) -> None:
    sync_api = pytest.importorskip('playwright.sync_api', reason='Playwright is not installed; CI installs it')
    chromium = shutil.which('chromium')
    if chromium is None:
        pytest.skip('Debian’s Chromium is not installed: make install-system')
    first: dict[str, str] = {}
    with sync_api.sync_playwright() as playwright:
        root = ['--no-sandbox'] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=root)
        page = browser.new_page()
        for query in SUBJECTS:
            page.goto(f'{address}/index.html?q={query}')
            page.wait_for_selector('.md-search-result__link', state='attached')
            first[query] = page.eval_on_selector('.md-search-result__link', 'link => link.pathname')
        browser.close()

    assert first == {query: f'/{target}' for query, target in SUBJECTS.items()}


def test_every_test_that_a_page_or_a_module_cites_exists() -> None:
    modules = [path for package in ('pydantic_ai_slim', 'tool_approval') for path in (ROOT / package).glob('**/*.py')]
    citation = re.compile(r'`(test_\w+)(?:\.py)?`|\b(test_\w+)(?:\.py)?[):]')
    cited: dict[str, list[str]] = {}
    for path in [*PAGES, *(path for path in modules if 'stories' not in path.parts)]:
        for names in citation.findall(path.read_text()):
            cited.setdefault(''.join(names), []).append(str(path.relative_to(ROOT)))
    tests = [path for folder in ('tests', 'maintainers/tests') for path in (ROOT / folder).glob('**/test_*.py')]
    existing = {name for path in tests for name in [path.stem, *re.findall(r'def (test_\w+)', path.read_text())]}

    assert {name: places for name, places in cited.items() if name not in existing} == {}


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r'`(\w+\.py)`', (DOCS / 'how-to' / 'examples.md').read_text()))

    assert listed == {example.name for example in (ROOT / 'examples').glob('*.py')}

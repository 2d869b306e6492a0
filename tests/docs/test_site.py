"""Links and navigation resolve, and the built site needs nothing from elsewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
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


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub('', page.read_text()))


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
    """What a browser fetches when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in ('audio', 'embed', 'iframe', 'img', 'input', 'script', 'source', 'track', 'video'):
            self.fetched.append(attributes.get('src') or '')
        elif tag == 'link':
            self.fetched.append(attributes.get('href') or '')


@pytest.mark.thorough  # `make docs` builds it
def test_the_site_builds_strictly_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / 'site'

    built = subprocess.run(
        [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(site)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert built.returncode == 0, built.stdout + built.stderr
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


def test_the_tests_that_the_guarantees_name_exist() -> None:
    named = set(re.findall(r'`(test_\w+)`', (DOCS / 'explanation' / 'guarantees.md').read_text()))
    defined = {
        name
        for file in (ROOT / 'tests' / 'loop').glob('**/test_*.py')
        for name in re.findall(r'def (test_\w+)', file.read_text())
    }

    assert named
    assert named - defined == set()


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r'`(\w+\.py)`', (DOCS / 'how-to' / 'examples.md').read_text()))

    assert listed == {example.name for example in (ROOT / 'examples').glob('*.py')}

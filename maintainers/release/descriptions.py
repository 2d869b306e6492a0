"""Check whether an index can show the README of a package, and whether its links work there."""

import re
from html.parser import HTMLParser
from typing import Any

from readme_renderer import markdown

_FENCE = re.compile(r'^ {0,3}(```+|~~~+)', re.MULTILINE)
_ELSEWHERE = re.compile(r'(https://|mailto:|#)')


def description_problems(text: Any, content_type: str | None) -> list[str]:
    """Return the problems of a description, as ends of sentences about the package."""
    if not isinstance(text, str) or not text.strip():
        return ['has no description']
    if (content_type or '').split(';')[0] != 'text/markdown':
        return [f'says that its description is {content_type}, not text/markdown']
    found = ['has a code block without an end'] if _has_open_fence(text) else []
    rendered = markdown.render(text)
    if rendered is None:
        return [*found, 'has a description that cannot be rendered']
    page = _Page()
    page.feed(rendered)
    if page.titles != 1:
        found.append(f'has {page.titles} titles in its description')
    # On the index, a path in the repository is not a valid link.
    return found + [f'links to {link!r}' for link in page.links if not _ELSEWHERE.match(link)]


def _has_open_fence(text: str) -> bool:
    opened = ''
    for fence in _FENCE.findall(text):
        if not opened:
            opened = fence
        elif fence.startswith(opened):
            opened = ''
    return bool(opened)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.titles = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == 'h1':
            self.titles += 1
        self.links += [value or '' for name, value in attrs if name in ('href', 'src')]

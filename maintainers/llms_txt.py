"""Write `llms.txt`, a list of the site's pages for language models, when the site is built."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def lines_of(nav: list[dict[str, Any]], level: int = 2) -> Iterator[str]:
    """Yield a heading for each section of the navigation, and a link for each page."""
    for entry in nav:
        for title, target in entry.items():
            if isinstance(target, str):
                yield f'- [{title}]({target.removesuffix(".md")}.html)'
            elif title != 'Maintainers':
                yield f'\n{"#" * level} {title}\n'
                yield from lines_of(target, level + 1)


def on_post_build(config: Mapping[str, Any]) -> None:
    """Write the file. mkdocs calls this hook."""
    lines = [f'# {config["site_name"]}', '', f'> {config["site_description"]}', *lines_of(config['nav']), '']
    (Path(config['site_dir']) / 'llms.txt').write_text('\n'.join(lines), encoding='utf-8')

"""The page on the architecture names files and packages that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / 'docs' / 'architecture.md'
HOMES = (ROOT, ROOT / 'tool_approval' / 'tool_approval', ROOT / 'pydantic_ai_slim' / 'pydantic_ai_deferred')


def test_every_file_that_it_names_exists():
    text = PAGE.read_text(encoding='utf-8')
    named = set(re.findall(r'[\w/]+(?:/|\.py|\.toml)(?![\w<])', text))

    missing = sorted(path for path in named if not any((home / path).exists() for home in HOMES))

    assert len(named) > 20
    assert missing == []


def test_every_package_has_a_row():
    rows = set(re.findall(r'`([\w/]+)`', ' '.join(re.findall(r'^\| (`.*?) \|', PAGE.read_text(), re.MULTILINE))))
    packages = {
        path.relative_to(HOMES[1]).as_posix()
        for path in HOMES[1].iterdir()
        if path.suffix != '.pyc' and not path.name.startswith('_') and path.name != 'py.typed'
    }

    assert {row.split('/')[0] for row in rows} == {package.removesuffix('.py') for package in packages}

"""Every block of the documentation that runs is run, prints what the page says, and looks as all our code does."""

import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import PAGES, ROOT, Block, blocks_of, run_page

PAGES_WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.mark.usefixtures('own_home')
@pytest.mark.parametrize('page', PAGES_WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    for block, printed in run_page(blocks_of(page), 'docs_page'):
        assert printed == block.output, f'{page.relative_to(ROOT)}:{block.line} prints something else'


def ruff(*arguments: str) -> str:
    command = [sys.executable, '-m', 'ruff', *arguments, '--config', str(ROOT / 'pyproject.toml'), '--no-cache']
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    return '' if finished.returncode == 0 else finished.stdout + finished.stderr


def python_of(page: Path) -> list[Block]:
    return [block for block in blocks_of(page) if block.is_python]


def file_name(page: Path) -> str:
    return '_'.join(page.relative_to(ROOT).with_suffix('').parts).lower().replace('-', '_')


def test_every_block_is_formatted(tmp_path: Path) -> None:
    for page in PAGES_WITH_CODE:
        for block in python_of(page):
            (tmp_path / f'{file_name(page)}_line_{block.line}.py').write_text(block.source)

    assert ruff('format', '--diff', str(tmp_path)) == ''


def test_every_page_is_linted(tmp_path: Path) -> None:
    for page in PAGES_WITH_CODE:
        (tmp_path / f'{file_name(page)}.py').write_text('\n\n'.join(block.source for block in python_of(page)))

    # Imports are in the block that first needs them; examples need no docstrings, and few annotations.
    assert ruff('check', '--output-format', 'concise', '--ignore', 'ANN,D,E402', str(tmp_path)) == ''


def test_pages_have_code() -> None:
    assert {ROOT / 'README.md', ROOT / 'docs' / 'tutorial.md'} <= set(PAGES_WITH_CODE)

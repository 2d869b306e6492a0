"""Every settings file of the cookbook can be used, and decides what the table below it says."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tool_approval.cli.check import inspect
from tool_approval.cli.judging import FILE_TOOLS, CallJudge
from tool_approval.settings import load_settings, parse_settings

from tests.approval.cli.conftest import Working
from tests.system import needs_git

from .blocks import ROOT

PAGE = (ROOT / 'docs' / 'how-to' / 'cookbook.md').read_text()
_RECIPE: Final = re.compile(
    r'^## (?P<title>[^\n]+)\n\n```yaml\n(?P<text>.*?)^```\n\n(?P<table>(?:\|[^\n]*\n)+)', re.DOTALL | re.MULTILINE
)
RECIPES: Final = {found['title']: (found['text'], found['table']) for found in _RECIPE.finditer(PAGE)}
_OUTCOMES: Final = {'allowed': 'allow', 'asked': 'ask', 'blocked': 'block'}


def rows(table: str) -> list[tuple[str, str]]:
    """Each call of a table, with the outcome that its row names."""
    found: list[tuple[str, str]] = []
    for line in table.splitlines()[2:]:
        _, outcome, calls, _ = line.split('|')
        found += ((_OUTCOMES[outcome.strip()], call) for call in re.findall('`([^`]+)`', calls))
    return found


def call_of(text: str) -> tuple[str, dict[str, Any]]:
    tool, _, path = text.partition(' ')
    return (tool, {'path': path}) if tool in FILE_TOOLS else ('shell', {'command': text})


def project(folder: Path, text: str) -> Path:
    """A repository with the settings file, and the directories that it names."""
    subprocess.run(['git', 'init', '--quiet', str(folder)], check=True)
    (folder / 'approvals.yaml').write_text(text)
    sandbox = parse_settings(text).sandbox
    paths = sandbox.paths.values() if sandbox is not None else ()
    for path in paths:
        (folder / path.root).mkdir(parents=True, exist_ok=True)
    return folder


def test_the_page_has_the_recipes() -> None:
    assert len(RECIPES) == PAGE.count('```yaml') == PAGE.count('\n## ') == 6


@needs_git
@pytest.mark.parametrize('title', RECIPES)
def test_check_has_no_complaint(title: str, tmp_path: Path) -> None:
    folder = project(tmp_path, RECIPES[title][0])

    _, loaded, findings = inspect(None, str(folder))

    assert loaded is not None
    assert [each.as_json() for each in findings if each.level != 'note'] == []


@needs_git
@pytest.mark.parametrize('title', RECIPES)
def test_every_call_is_decided_as_the_table_says(title: str, tmp_path: Path) -> None:
    text, table = RECIPES[title]
    folder = project(tmp_path, text)
    loaded = load_settings(folder / 'approvals.yaml', directory=folder, named=True)
    judge = CallJudge(loaded, folder, find_backend=lambda settings: Working())

    expected = {call: outcome for outcome, call in rows(table)}
    decided = {call: judge.judge(*call_of(call)).deciding for call in expected}

    assert {call: each.decision for call, each in decided.items()} == expected, decided
    assert len(set(expected.values())) >= 2

from pathlib import Path
from typing import Any

import pytest

from maintainers.peers import __main__ as command
from maintainers.peers.catalog import CONTROL, REFERENCE
from maintainers.peers.results import Case, Results, Sample


def sample(peer: str) -> Sample:
    return Sample(peer=peer, round=1, cpu_s=0.02, wall_s=0.02, plain_cpu_s=0.01, plain_wall_s=0.01)


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of measuring, adds the samples of one case."""

    def measure(results: Results, *arguments: Any) -> None:
        results.cases.append(Case(kind='rounds', rounds=10, calls=1, samples=[sample(REFERENCE), sample(CONTROL)]))

    monkeypatch.setattr(command, 'PEERS', ())
    monkeypatch.setattr(command, 'measure', measure)


def test_the_page_is_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command.main(['--write', str(tmp_path / 'page.md')])

    text = (tmp_path / 'page.md').read_text()
    assert 'N = 10, one call in each response' in text
    assert capsys.readouterr().out == text


def test_every_picture_of_the_page_is_written_beside_it(tmp_path: Path):
    command.main(['--quick', '--write', str(tmp_path / 'page.md')])

    assert '(page-rounds.svg)' in (tmp_path / 'page.md').read_text()
    assert (tmp_path / 'page-rounds.svg').read_text().startswith('<svg')

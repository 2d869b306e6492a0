from pathlib import Path

import pytest

from maintainers.peers.__main__ import main
from maintainers.peers.catalog import CONTROL, REFERENCE
from maintainers.peers.results import Case, Results, Sample


def sample(peer: str) -> Sample:
    return Sample(peer=peer, round=1, cpu_s=0.02, wall_s=0.02, plain_cpu_s=0.01, plain_wall_s=0.01)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    case = Case(kind='rounds', rounds=10, calls=1, samples=[sample(REFERENCE), sample(CONTROL)])
    path = tmp_path / 'data.json'
    path.write_text(Results(machine='a machine', load_before=0, cases=[case]).dump())
    return path


def test_a_page_is_written_again_from_its_data(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    main(['--render', str(data), '--write', str(tmp_path / 'page.md')])

    text = (tmp_path / 'page.md').read_text()
    assert 'N = 10, one call in each response' in text
    assert capsys.readouterr().out == text


def test_every_picture_of_the_page_is_written_beside_it(data: Path, tmp_path: Path):
    main(['--render', str(data), '--write', str(tmp_path / 'page.md')])

    assert '(page-rounds.svg)' in (tmp_path / 'page.md').read_text()
    assert (tmp_path / 'page-rounds.svg').read_text().startswith('<svg')


def test_contradictory_options_are_refused(data: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(['--quick', '--render', str(data)])

    assert 'not allowed with argument' in capsys.readouterr().err

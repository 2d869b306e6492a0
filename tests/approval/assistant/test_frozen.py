"""What is said of a directory in which commands can make nothing."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tool_approval.assistant.build import READ_ONLY, notes_of, reasons_of
from tool_approval.os_sandbox.mounts import FROZEN

OTHER = 'something else'


@dataclass
class Workspace:
    """As much of one as is looked at."""

    directory: Path
    notes: tuple[str, ...]


@pytest.fixture
def frozen(tmp_path):
    return Workspace(tmp_path, (OTHER, f'{FROZEN} {tmp_path} while it has no x; a folder lifts this'))


@pytest.mark.parametrize(
    ('made', 'needed'),
    [
        ([], '.git (git init) and approvals.yaml'),
        (['.git'], 'approvals.yaml'),
        (['approvals.toml'], '.git (git init)'),
    ],
)
def test_one_line_says_what_lifts_it(frozen, made, needed):
    for name in made:
        (frozen.directory / name).mkdir()

    assert notes_of(frozen) == (OTHER, f'commands cannot make or delete anything directly here without {needed}')


def test_where_nothing_is_missing_the_note_stays(frozen):
    for name in ('.git', 'approvals.yaml'):
        (frozen.directory / name).symlink_to('elsewhere')

    assert notes_of(frozen) == frozen.notes


def test_a_note_on_another_folder_stays(frozen):
    other = Workspace(frozen.directory / 'sub', frozen.notes)

    assert notes_of(other) == frozen.notes
    assert reasons_of(other) == {}


def test_a_result_that_failed_for_it_says_so(frozen):
    assert str(frozen.directory) in reasons_of(frozen)[READ_ONLY]

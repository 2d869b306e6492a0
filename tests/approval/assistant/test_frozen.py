"""A note names a directory in which commands cannot create anything."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tool_approval.assistant.build import READ_ONLY, limits_of
from tool_approval.os_sandbox.mounts import FROZEN

OTHER = 'something else'


@dataclass
class Workspace:
    """As much of one as is looked at."""

    directory: Path
    notes: tuple[str, ...]
    problem: str | None = 'no layers'

    @property
    def shell(self):
        return self

    def names_problem(self):
        return self.problem


@pytest.fixture
def frozen(tmp_path):
    return Workspace(tmp_path, (OTHER, f'{FROZEN} {tmp_path} while it has no x; to allow this, make a folder'))


@pytest.mark.parametrize(
    ('made', 'needed'),
    [
        ([], '.git (git init) and approvals.yaml'),
        (['.git'], 'approvals.yaml'),
        (['approvals.toml'], '.git (git init)'),
    ],
)
def test_note_on_a_frozen_directory_names_what_would_lift_it(frozen, made, needed):
    for name in made:
        (frozen.directory / name).mkdir()

    what = 'commands cannot make or delete anything directly in this folder, even with your approval,'
    assert limits_of(frozen)[0] == (OTHER, f'{what} because no layers; to lift this limit, create {needed}')


def test_directory_whose_names_can_be_asked_for_has_no_note(frozen):
    assert limits_of(replace(frozen, problem=None)) == ((OTHER,), {})


def test_note_stays_if_no_name_is_missing(frozen):
    for name in ('.git', 'approvals.yaml'):
        (frozen.directory / name).symlink_to('elsewhere')

    assert limits_of(frozen)[0] == frozen.notes


def test_a_note_on_another_folder_stays(frozen):
    other = Workspace(frozen.directory / 'sub', frozen.notes)

    assert limits_of(other)[0] == frozen.notes
    assert limits_of(other)[1] == {}


def test_failed_result_in_a_frozen_directory_names_the_directory(frozen):
    assert str(frozen.directory) in limits_of(frozen)[1][READ_ONLY]

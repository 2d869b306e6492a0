import tomllib

import pytest
from packaging.requirements import Requirement

from maintainers.release.dependency_sets import FOLDER, SETS, TOOLS, pins, problems
from maintainers.release.environments import ROOT

OURS = {'pydantic-ai-deferred-handler', 'tool-approval'}


def direct(folder: str, *, with_extras: bool) -> list[Requirement]:
    """Return the requirements of a distribution, without the other one."""
    project = tomllib.loads((ROOT / folder / 'pyproject.toml').read_text())['project']
    extras = project.get('optional-dependencies', {}).values() if with_extras else []
    wanted = [Requirement(text) for group in (project['dependencies'], *extras) for text in group]
    return [requirement for requirement in wanted if requirement.name not in OURS]


EVERYTHING = direct('pydantic_ai_slim', with_extras=True) + direct('tool_approval', with_extras=True)


def test_there_is_a_file_for_each_set_and_no_other():
    assert {file.stem for file in FOLDER.glob('*.txt')} == set(SETS)


def test_newest_set_has_every_requirement():
    assert problems((FOLDER / 'newest.txt').read_text(), EVERYTHING, is_minimal=False) == []


def test_the_minimal_core_has_the_lowest_pydantic():
    core = direct('tool_approval', with_extras=False)

    assert problems((FOLDER / 'minimal-core.txt').read_text(), core, is_minimal=True) == []


def test_the_minimal_set_has_the_lowest_of_everything_that_no_other_extra_raises():
    # pydantic-ai-slim asks for a higher pydantic than the core does, and the MCP library of openai-agents for a higher
    # starlette than the page does.
    not_raised = [requirement for requirement in EVERYTHING if requirement.name not in ('pydantic', 'starlette')]
    text = (FOLDER / 'minimal.txt').read_text()

    assert problems(text, not_raised, is_minimal=True) == []
    assert problems(text, EVERYTHING, is_minimal=False) == []


@pytest.mark.parametrize('name', SETS)
def test_every_locked_file_has_its_hash(name: str):
    text = (FOLDER / f'{name}.txt').read_text()

    assert text.count('==') > 0
    assert [line for line in text.splitlines() if '==' in line and not line.endswith('\\')] == []


def test_wrong_or_missing_versions_of_a_lock_file_are_found():
    text = 'low==1.0 \\\n    --hash=sha256:0\nhigh==3.0 ; python_version >= "3.11" \\\n'
    wanted = [Requirement(text) for text in ('low>=2', 'high>=1,<4', 'absent>=1')]

    assert problems(text, wanted, is_minimal=True) == [
        'low is locked at 1.0, and >=2 is asked for.',
        f'high is locked at 3.0, above the lowest of {wanted[1].specifier}.',
        'absent is not locked.',
    ]


def test_pin_for_another_python_is_ignored():
    text = "Some_Name==1.0 ; python_version < '3' \\\nSome_Name==2.0 ; python_version >= '3' \\\n"

    assert pins(text) == {'some-name': '2.0'}


def test_a_lowest_version_may_be_written_shorter_than_it_is_locked():
    assert problems('a==2.10.0', [Requirement('a>=2.10,<3')], is_minimal=True) == []


def test_the_tests_have_all_their_tools_on_each_set():
    environments = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['hatch']['envs']
    listed = {
        Requirement(line).name
        for name in ('core', 'host')
        for line in environments[name]['dependencies']
        if '{' not in line
    }

    assert listed - pins((FOLDER / 'newest.txt').read_text()).keys() <= {*TOOLS}
    assert {Requirement(line).name for line in environments['core']['dependencies']} <= {*TOOLS}

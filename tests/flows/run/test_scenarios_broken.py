"""Settings, environments and repositories that are broken or unusual: messages to the person and to the model."""

from pathlib import Path

import pytest

from .scenario import Scenario, shell
from .test_scenarios import SHOP


def test_settings_with_an_unknown_preset_start_nothing(scenario: Scenario) -> None:
    scenario.write({'approvals.yaml': 'extends: [defalt]\n'})

    screen = scenario.talk.start('Go.', steps=[], is_confined=True, columns=300)

    assert screen.end() == 2
    assert (
        f'{scenario.path}/approvals.yaml:1: extends.0: unknown value `defalt`; did you mean `default`?' in screen.text
    )
    assert scenario.talk.server.requests == []


def test_a_broken_environment_is_named_and_not_used(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    environment = scenario.path / '.venv'
    scenario.write({'.venv/pyvenv.cfg': 'home = /nowhere\n'})
    (environment / 'bin').mkdir()
    (environment / 'bin' / 'python').symlink_to('/nowhere/python')

    results = scenario.play(
        'Test it.',
        shell('.venv/bin/python -m pytest'),
        shell('pip install greeting', access=['environment']),
        questions=[('$ pip install greeting', 'n')],
        environment={'VIRTUAL_ENV': str(environment), 'PATH': f'{environment}/bin:/usr/bin:/bin'},
    )

    assert '.venv/bin/python: No such file or directory' in results[0]
    assert 'A program was not found. Commands can use programs of the system' in results[0]
    # The line is longer than the screen is wide.
    assert f'VIRTUAL_ENV:{environment}isignored' in ''.join(scenario.talk.screen.scrolled.split())
    assert 'writes to .venv' not in scenario.talk.screen.scrolled


def test_a_linked_work_tree_is_written_once_it_was_approved(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)
    scenario.git('worktree', 'add', '--quiet', str(tmp_path / 'linked'))
    scenario.talk.cwd = scenario.path = tmp_path / 'linked'
    scenario.write({'new.py': 'import shop\n'})

    results = scenario.play('Add it.', shell('git add -A'), questions=[('$ git add -A', 'y')])

    assert results == ['[no output]']
    assert scenario.git('status', '--porcelain') == 'A  new.py\n'


def test_a_bare_repository_is_a_folder_with_files_and_no_git(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)
    before = scenario.git('show-ref')
    scenario.git('clone', '--quiet', '--bare', '.', str(tmp_path / 'shop.git'))
    scenario.talk.cwd = scenario.path = tmp_path / 'shop.git'

    results = scenario.play(
        'Tag it.',
        shell('git tag v1'),
        shell('git tag v1', access=['write']),
        questions=[('extra access: writes to files in this directory', 'y')],
    )

    assert "access=['write']" in results[0]
    assert results[1] == '[no output]'
    assert scenario.git('tag') == 'v1\n'
    assert 'writes to .git' not in scenario.talk.screen.scrolled
    scenario.path = tmp_path / 'project'
    assert scenario.git('show-ref') == before


@pytest.mark.thorough
def test_a_repository_of_20_000_files_is_added_and_committed(scenario: Scenario) -> None:
    scenario.repository({f'd{number % 100}/{number}.txt': f'{number}\n' for number in range(20_000)})
    scenario.write({'d0/0.txt': 'changed\n', 'new/a.txt': 'a\n'})

    results = scenario.play(
        'Commit it.',
        shell('git add -A && git commit -q -m "Change two"'),
        questions=[('extra access: writes to .git', 'y')],
    )

    assert results == ['[no output]']
    assert scenario.git('show', '--format=%s', '--name-only') == 'Change two\n\nd0/0.txt\nnew/a.txt\n'

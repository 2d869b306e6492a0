"""The workflows call what a developer calls, and may do no more than they must."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from maintainers.release.environments import ROOT, SUPPORTED

WORKFLOWS = sorted((ROOT / '.github' / 'workflows').glob('*.yml'))
_COMMAND = re.compile(r'(sudo )?(\.ci/run|make ([a-z-]+)( [A-Z_]+=("[^"]*"|\'[^\']*\'|\S+))*)')
_PINNED = re.compile(r'[\w.-]+/[\w./-]+@(v\d+|release/v\d+|[0-9a-f]{40})')


def targets() -> set[str]:
    return set(re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(), re.MULTILINE))


def problems(workflow: dict[str, Any], known_targets: set[str]) -> list[str]:
    found: list[str] = []
    if any(level != 'read' for level in workflow.get('permissions', {'': 'everything'}).values()):
        found.append('the workflow may write')
    for name, job in workflow['jobs'].items():
        if 'timeout-minutes' not in job:
            found.append(f'{name} has no time limit')
        for step in job['steps']:
            found += [f'{name}: {problem}' for problem in step_problems(step, known_targets)]
    return found


def step_problems(step: dict[str, Any], known_targets: set[str]) -> Iterator[str]:
    if 'uses' in step:
        if not _PINNED.fullmatch(step['uses']):
            yield f'{step["uses"]} is not pinned'
    else:
        command = _COMMAND.fullmatch(step['run'])
        # An expression, or a name that an attacker chose, would be interpreted by a shell and by make.
        if command is None or '$' in step['run']:
            yield f'{step["run"]!r} does not call .ci/run or make'
        elif command[3] is not None and command[3] not in known_targets:
            yield f'{step["run"]!r} calls a target that the Makefile has not'


@pytest.mark.parametrize('file', WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_calls_only_what_a_developer_calls(file: Path):
    assert problems(yaml.safe_load(file.read_text()), targets()) == []


def test_there_are_workflows_for_changes_and_for_releases():
    assert [file.name for file in WORKFLOWS] == ['ci.yml', 'release.yml']


def test_the_gates_run_on_every_supported_python():
    jobs = yaml.safe_load((ROOT / '.github' / 'workflows' / 'ci.yml').read_text())['jobs']

    assert tuple(jobs['gates']['strategy']['matrix']['python']) == SUPPORTED


@pytest.mark.parametrize('file', WORKFLOWS, ids=lambda file: file.name)
def test_the_gates_skip_nothing_for_want_of_a_system_package(file: Path):
    jobs = yaml.safe_load(file.read_text())['jobs'].values()

    gates = [step for job in jobs for step in job['steps'] if step.get('run') == '.ci/run']

    assert [step['env'] for step in gates] == [{'SYSTEM_PACKAGES': 'required'}]


def test_only_the_publishing_job_may_write_and_it_runs_no_code_of_the_repository():
    jobs = yaml.safe_load((ROOT / '.github' / 'workflows' / 'release.yml').read_text())['jobs']

    writers = [name for name, job in jobs.items() if 'write' in job['permissions'].values()]
    used = [step.get('uses', '').partition('@')[0] for step in jobs['publish']['steps']]

    assert writers == ['publish']
    assert used == ['actions/download-artifact', 'pypa/gh-action-pypi-publish']
    assert (jobs['publish']['needs'], jobs['publish']['environment']) == ('build', 'pypi')


def test_the_tag_is_checked_before_anything_else_runs():
    steps = yaml.safe_load((ROOT / '.github' / 'workflows' / 'release.yml').read_text())['jobs']['build']['steps']

    commands = [step['run'] for step in steps if 'run' in step]

    assert commands[0].startswith('make release-tag')


@pytest.mark.parametrize(
    ('step', 'problem'),
    [
        ({'run': 'pytest'}, "'pytest' does not call .ci/run or make"),
        ({'run': 'make test && curl x'}, "'make test && curl x' does not call .ci/run or make"),
        ({'run': 'make test ARGS=${{ github.head_ref }}'}, 'does not call .ci/run or make'),
        ({'run': 'make test ARGS="$GITHUB_REF_NAME"'}, 'does not call .ci/run or make'),
        ({'run': 'make tset'}, "'make tset' calls a target that the Makefile has not"),
        ({'uses': 'actions/checkout@main'}, 'actions/checkout@main is not pinned'),
        ({'uses': 'actions/checkout'}, 'actions/checkout is not pinned'),
    ],
)
def test_a_step_that_does_something_else_is_found(step: dict[str, Any], problem: str):
    workflow = {'permissions': {}, 'jobs': {'job': {'timeout-minutes': 5, 'steps': [step]}}}

    (found,) = problems(workflow, {'test'})
    assert problem in found


@pytest.mark.parametrize('workflow', [{}, {'permissions': {'contents': 'write'}}])
def test_a_workflow_that_may_write_is_found(workflow: dict[str, Any]):
    assert problems({**workflow, 'jobs': {}}, set()) == ['the workflow may write']


def test_a_job_without_a_time_limit_is_found():
    assert problems({'permissions': {}, 'jobs': {'job': {'steps': []}}}, set()) == ['job has no time limit']

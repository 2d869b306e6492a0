from pathlib import Path
from typing import Any

import pytest

from maintainers.release.artefacts import metadata_of
from maintainers.release.installs import package_of, report_problems

from .test_artefacts import wheel


def report(module: str = 'sample_approval.config', **failure: Any) -> dict[str, Any]:
    failures = {module: {'text': 'Why.', 'extra': '', 'library': '', 'is_public': True, **failure}} if failure else {}
    return {'package': 'sample_approval', 'version': '1.2.0', 'failures': failures}


def problems(tmp_path: Path, reported: dict[str, Any], extra: str | None) -> str:
    return '\n'.join(report_problems(reported, metadata_of(wheel(tmp_path)), extra))


def test_a_wheel_says_which_package_it_installs(tmp_path: Path):
    assert package_of(wheel(tmp_path)) == 'sample_approval'


@pytest.mark.parametrize(
    ('failure', 'extra'),
    [
        pytest.param({}, None, id='everything imports'),
        pytest.param({}, 'yaml', id='everything imports with an extra'),
        pytest.param({}, 'all', id='everything imports with all extras'),
        pytest.param(
            {'error': 'MissingExtraError', 'extra': 'yaml'},
            None,
            id='a public module asks for an extra that is not installed',
        ),
        pytest.param(
            {'error': 'ModuleNotFoundError', 'library': 'yaml', 'is_public': False},
            None,
            id='a module behind a public one lacks its library',
        ),
    ],
)
def test_complete_installation_has_no_problems(tmp_path: Path, failure: dict[str, Any], extra: str | None):
    assert problems(tmp_path, report(**failure), extra) == ''


@pytest.mark.parametrize(
    ('failure', 'extra', 'problem'),
    [
        ({'error': 'MissingExtraError', 'extra': 'yaml'}, 'yaml', "asks for the extra 'yaml', which is installed"),
        ({'error': 'MissingExtraError', 'extra': 'yaml'}, 'all', "asks for the extra 'yaml', which is installed"),
        ({'error': 'MissingExtraError', 'extra': 'yml'}, None, 'which does not exist'),
        ({'error': 'ModuleNotFoundError', 'library': 'yaml'}, None, 'does not import'),
        ({'error': 'ModuleNotFoundError', 'library': 'yaml', 'is_public': False}, 'all', 'does not import'),
        ({'error': 'ModuleNotFoundError', 'library': 'sample_approval', 'is_public': False}, None, 'does not import'),
        ({'error': 'TypeError', 'is_public': False}, None, 'TypeError: Why.'),
    ],
)
def test_a_module_that_does_not_import_is_found(
    tmp_path: Path, failure: dict[str, Any], extra: str | None, problem: str
):
    assert problem in problems(tmp_path, report(**failure), extra)


def test_a_version_that_differs_from_the_metadata_is_found(tmp_path: Path):
    assert 'says that it is 1.3.0' in problems(tmp_path, {**report(), 'version': '1.3.0'}, None)

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


@pytest.mark.parametrize('extra', [None, 'yaml', 'all'])
def test_where_everything_imports_nothing_is_wrong(tmp_path: Path, extra: str | None):
    assert problems(tmp_path, report(), extra) == ''


def test_a_public_module_may_ask_for_an_extra_that_is_not_installed(tmp_path: Path):
    assert problems(tmp_path, report(error='MissingExtraError', extra='yaml'), None) == ''


def test_a_module_behind_a_public_one_may_lack_its_library(tmp_path: Path):
    reported = report(error='ModuleNotFoundError', library='yaml', is_public=False)

    assert problems(tmp_path, reported, None) == ''


@pytest.mark.parametrize('extra', ['yaml', 'all'])
def test_an_extra_that_does_not_bring_what_it_is_for_is_found(tmp_path: Path, extra: str):
    reported = report(error='MissingExtraError', extra='yaml')

    assert "asks for the extra 'yaml', which is installed" in problems(tmp_path, reported, extra)


@pytest.mark.parametrize(
    ('failure', 'extra', 'problem'),
    [
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

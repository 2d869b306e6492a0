from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from maintainers.release.versions import LOOP_REQUIREMENT, PACKAGES, ROOT, problems, set_version, version_of

OPEN = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Something.\n'
CLOSED = '# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-01\n\n- Something.\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for package in PACKAGES:
        (tmp_path / package).parent.mkdir(parents=True)
        (tmp_path / package).write_text("__version__ = '0.1.0'\n")
    (tmp_path / LOOP_REQUIREMENT).write_text('a = ["pydantic-ai-deferred-handler>=0.1.0,<0.2", "other"]\n')
    (tmp_path / 'CHANGELOG.md').write_text(OPEN)
    return tmp_path


def test_the_version_of_this_repository_is_the_same_everywhere():
    assert problems(ROOT) == []


def test_an_unreleased_version_needs_no_section_of_its_own(repository: Path):
    assert problems(repository) == []
    assert str(version_of(repository)) == '0.1.0'


def test_a_release_needs_its_section_and_an_empty_open_one(repository: Path):
    assert problems(repository, is_release=True) == [
        'CHANGELOG.md does not begin with 0.1.0.',
        'CHANGELOG.md has entries under Unreleased.',
    ]


def test_a_closed_changelog_is_ready_for_its_release(repository: Path):
    (repository / 'CHANGELOG.md').write_text(CLOSED)

    assert problems(repository, is_release=True) == []


@pytest.mark.parametrize(
    ('files', 'text', 'problem'),
    [
        (PACKAGES[1:2], "__version__ = '0.1.1'\n", 'The packages disagree'),
        (PACKAGES[1:2], "__version__ = '0.1.0'\n__version__ = '0.1.1'\n", '2 lines with __version__'),
        # An index would not show these as they are written.
        (PACKAGES, "__version__ = 'latest'\n", 'is not a version'),
        (PACKAGES, "__version__ = '0.1.00'\n", 'not in its normal form'),
        ([LOOP_REQUIREMENT], 'a = ["pydantic-ai-deferred-handler"]', 'allows 0.2 too'),
        ([LOOP_REQUIREMENT], 'a = ["pydantic-ai-deferred-handler>=0.2,<0.3"]', 'which 0.1.0 is not'),
        ([LOOP_REQUIREMENT], 'a = []', 'does not ask for'),
        (['CHANGELOG.md'], CLOSED.replace('0.1.0', '0.2.0'), 'CHANGELOG.md begins with 0.2.0'),
        (['CHANGELOG.md'], CLOSED.replace('2026-11-01', '01.11.2026'), 'no day'),
        (['CHANGELOG.md'], CLOSED + '## [0.1.1] - 2026-11-02\n', 'does not begin with the newest'),
    ],
)
def test_each_disagreement_is_found(repository: Path, files: Iterable[str], text: str, problem: str):
    for file in files:
        (repository / file).write_text(text)

    assert problem in '\n'.join(problems(repository))


def test_setting_a_version_changes_every_place(repository: Path):
    set_version(repository, '0.2.0', day=date(2026, 12, 1))

    assert problems(repository, is_release=True) == []
    assert str(version_of(repository)) == '0.2.0'
    assert 'pydantic-ai-deferred-handler>=0.2.0,<0.3"' in (repository / LOOP_REQUIREMENT).read_text()
    assert '## [0.2.0] - 2026-12-01\n\n### Added' in (repository / 'CHANGELOG.md').read_text()


@pytest.mark.parametrize('version', ['0.0.9', '0.1.0', '0.2.0-rc1'])
def test_a_version_that_cannot_follow_is_refused_and_nothing_written(repository: Path, version: str):
    (repository / 'CHANGELOG.md').write_text(CLOSED.replace('## [Unreleased]\n', '## [Unreleased]\n\n- New.\n'))
    before = {file: file.read_text() for file in repository.glob('**/*.*') if file.is_file()}

    with pytest.raises(ValueError, match=r'not higher|normal form'):
        set_version(repository, version, day=date(2026, 12, 1))

    assert {file: file.read_text() for file in repository.glob('**/*.*') if file.is_file()} == before


def test_an_empty_release_is_refused(repository: Path):
    (repository / 'CHANGELOG.md').write_text(CLOSED)

    with pytest.raises(ValueError, match='nothing to release'):
        set_version(repository, '0.2.0', day=date(2026, 12, 1))

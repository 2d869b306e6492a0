"""The reference has every public name, and every public name says what it is and what it raises."""

from pathlib import Path

import pytest

from .blocks import ROOT
from .public_names import PublicName, described, load, public_names, public_packages, without_docstring, without_raises

FOLDERS = {'pydantic_ai_deferred': ROOT / 'pydantic_ai_slim', 'tool_approval': ROOT / 'tool_approval'}
STAND_INS = 'tool_approval.compat'
"""Names of other packages under ours: the reference links to the page about them."""


@pytest.fixture(scope='module')
def names() -> list[PublicName]:
    return public_names(package for name, folder in FOLDERS.items() for package in public_packages(load(name, folder)))


def test_every_public_name_is_in_the_reference(names: list[PublicName]) -> None:
    in_reference = described((ROOT / 'docs' / 'reference').glob('**/*.md'))

    missing = sorted({name.path for name in names if not name.path.startswith(f'{STAND_INS}.')} - in_reference)

    assert missing == []


def test_reference_links_the_page_on_stand_ins(names: list[PublicName]) -> None:
    page = (ROOT / 'docs' / 'reference' / 'approval.md').read_text()

    packages = {name.path.rpartition('.')[0] for name in names if name.path.startswith(f'{STAND_INS}.')}

    assert packages
    assert [package for package in sorted(packages) if f'[`{package}`](' not in page] == []


def test_every_public_name_has_a_docstring(names: list[PublicName]) -> None:
    assert without_docstring(names) == []


def test_every_error_that_a_public_function_raises_itself_is_in_its_docstring(names: list[PublicName]) -> None:
    assert without_raises(names) == []


@pytest.mark.parametrize('package', FOLDERS)
def test_type_checkers_take_the_types_of_every_module(package: str) -> None:
    root = FOLDERS[package] / package

    folders = {module.parent for module in root.glob('**/*.py')}

    assert (root / 'py.typed').is_file()
    assert [folder for folder in sorted(folders) if not (folder / '__init__.py').is_file()] == []


SAMPLE = '''
"""A package."""

from .parts import Silent, Spoken, speak

__all__ = ('Silent', 'Spoken', 'speak')
'''
PARTS = '''
class Spoken:
    """A class that says everything."""

    size: int
    """In bytes."""

    def __init__(self, size: int) -> None:
        """Take the size.

        Raises:
            ValueError: It is negative.
        """
        if size < 0:
            raise ValueError('negative')
        self.size = size

    def _inner(self):
        raise RuntimeError


class Silent(Spoken):
    color: str

    def paint(self):
        raise KeyError('color')

    def __post_init__(self):
        raise self._refused()


def speak(word: str) -> None:
    """Say a word.

    Raises:
        ValueError: There is none.
    """

    def inner() -> None:
        raise OSError('belongs to the inner function')

    if not word:
        raise ValueError('empty')
    raise LookupError(word)
'''


@pytest.fixture
def sample(tmp_path: Path) -> list[PublicName]:
    package = tmp_path / 'sample_of_public_names'
    (package / '_private').mkdir(parents=True)
    (package / '__init__.py').write_text(SAMPLE)
    (package / 'parts.py').write_text(PARTS)
    (package / '_private' / '__init__.py').write_text("__all__ = ('hidden',)\nhidden = 1\n")
    return public_names(public_packages(load(package.name, tmp_path)))


def test_a_name_outside_of_the_reference_is_found(sample: list[PublicName], tmp_path: Path) -> None:
    page = tmp_path / 'page.md'
    page.write_text(
        '::: sample_of_public_names.Spoken\n\n    options: {}\n\nText about sample_of_public_names.speak.\n'
    )

    missing = {name.path for name in sample} - described([page])

    assert missing == {'sample_of_public_names.Silent', 'sample_of_public_names.speak'}


def test_a_missing_docstring_is_found(sample: list[PublicName]) -> None:
    found = without_docstring(sample)

    assert found == [
        'sample_of_public_names.Silent',
        'sample_of_public_names.parts.Silent.color',
        'sample_of_public_names.parts.Silent.paint',
    ]


def test_an_error_without_its_line_is_found(sample: list[PublicName]) -> None:
    found = without_raises(sample)

    assert found == [
        'sample_of_public_names.parts.Silent.__post_init__: _refused',
        'sample_of_public_names.parts.Silent.paint: KeyError',
        'sample_of_public_names.parts.speak: LookupError',
    ]

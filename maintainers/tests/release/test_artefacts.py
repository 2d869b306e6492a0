import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from maintainers.release import artefacts
from maintainers.release.environments import SUPPORTED

LICENCE = 'MIT License\n'
METADATA = """\
Metadata-Version: 2.4
Name: sample-approval
Version: 1.2.0
Summary: A sample.
License-Expression: MIT
Requires-Python: >=3.11
Requires-Dist: pydantic<3,>=2.10
Provides-Extra: yaml
Requires-Dist: pyyaml>=6.0; extra == 'yaml'
Provides-Extra: all
Requires-Dist: sample-approval[yaml]; extra == 'all'
Project-URL: Source, https://code.example.org/sample
Classifier: Typing :: Typed
{classifiers}
Description-Content-Type: text/markdown

# A sample

With a [page](https://docs.example.org/).
""".format(classifiers='\n'.join(f'Classifier: Programming Language :: Python :: {version}' for version in SUPPORTED))
INFO = 'sample_approval-1.2.0.dist-info'
TOP = 'sample_approval-1.2.0'


def wheel(folder: Path, metadata: str = METADATA, **files: str | None) -> Path:
    """A wheel that is right, but for what is said; `None` leaves a file out."""
    contents: dict[str, str | None] = {
        'sample_approval/__init__.py': '',
        'sample_approval/py.typed': '',
        'sample_approval/testing/__init__.py': '"""For users\' tests: no test itself."""',
        f'{INFO}/METADATA': metadata,
        f'{INFO}/licenses/LICENSE': LICENCE,
        f'{INFO}/RECORD': '',
        **files,
    }
    file = folder / 'sample_approval-1.2.0-py3-none-any.whl'
    with zipfile.ZipFile(file, 'w') as archive:
        for name, body in contents.items():
            if body is not None:
                archive.writestr(name, body)
    return file


def sdist(folder: Path, **files: str | None) -> Path:
    """An sdist that is right, but for what is said; `None` leaves a file out."""
    contents: dict[str, str | None] = {
        f'{TOP}/{name}': body
        for name, body in {
            'sample_approval/py.typed': '',
            'README.md': '# A sample',
            'LICENSE': LICENCE,
            'PKG-INFO': METADATA,
            'pyproject.toml': '',
        }.items()
    }
    file = folder / f'{TOP}.tar.gz'
    with tarfile.open(file, 'w:gz') as archive:
        for name, body in {**contents, **files}.items():
            if body is not None:
                member = tarfile.TarInfo(name)
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body.encode()))
    return file


def test_correct_artefacts_have_no_problems(tmp_path: Path):
    built = [wheel(tmp_path), sdist(tmp_path)]

    assert [artefacts.problems(artefact, licence=LICENCE) for artefact in built] == [[], []]


@pytest.mark.parametrize(
    ('build', 'file', 'body', 'problem'),
    [
        (wheel, 'sample_approval/test_it.py', '', 'has the test sample_approval/test_it.py'),
        (wheel, 'sample_approval/conftest.py', '', 'has the test'),
        (wheel, 'tests/__init__.py', '', 'has the test tests/__init__.py'),
        (wheel, 'other/__init__.py', '', "installs ['other', 'sample_approval']"),
        (wheel, 'sample_approval/__pycache__/a.cpython-311.pyc', '', 'has the leftover'),
        (wheel, 'sample_approval/py.typed', None, 'has no sample_approval/py.typed'),
        (wheel, 'sample_approval/ui/web.py', '', 'has no sample_approval/ui/__init__.py'),
        (wheel, f'{INFO}/licenses/LICENSE', None, 'has no licence file'),
        (wheel, f'{INFO}/licenses/LICENSE', 'Proprietary', 'another text in it'),
        (sdist, f'{TOP}/tests/test_it.py', '', 'has the test'),
        (sdist, 'elsewhere.py', '', 'has elsewhere.py, outside of'),
        (sdist, f'{TOP}/README.md', None, 'has no README.md'),
        (sdist, f'{TOP}/LICENSE', None, 'has no licence file'),
        (sdist, f'{TOP}/sample_approval/py.typed', None, 'has no py.typed'),
    ],
)
def test_an_artefact_with_a_wrong_file_is_found(
    tmp_path: Path, build: Callable[..., Path], file: str, body: str | None, problem: str
):
    built = build(tmp_path, **{file: body})

    assert problem in '\n'.join(artefacts.problems(built, licence=LICENCE))


@pytest.mark.parametrize(
    ('before', 'after', 'problem'),
    [
        ('Version: 1.2.0', 'Version: 1.2.1', 'says of itself'),
        ('License-Expression: MIT', 'License: MIT', 'not an SPDX expression'),
        ('License-Expression: MIT', 'License-Expression: mit', 'not an SPDX expression'),
        ('License-Expression: MIT', 'License-Expression: Free', 'not an SPDX expression'),
        ('Typing :: Typed', 'Typing :: Mostly', 'unknown classifier'),
        ('Typing :: Typed', 'License :: OSI Approved :: MIT License', 'besides its licence expression'),
        ('Classifier: Typing :: Typed\n', '', 'does not say that it is typed'),
        ('Classifier: Programming Language :: Python :: 3.14\n', '', 'names the Pythons'),
        ('>=3.11', '>=3.10', 'asks for Python >=3.10'),
        ('pydantic<3,>=2.10', 'pydantic<3', 'pydantic without a lowest version'),
        ('pydantic<3,>=2.10', 'pydantic @ https://x.example.org/p.whl', 'asks for pydantic from an address'),
        ("sample-approval[yaml]; extra == 'all'", "attrs>=25; extra == 'all'", "['pyyaml'] in the extra 'yaml'"),
        ('Source, https:', 'Source, http:', 'has the project URL'),
        ('Summary: A sample.', 'Summary: ', 'has no summary'),
        # A page that an index does not show well.
        ('# A sample\n\nWith a [page](https://docs.example.org/).\n', '', 'has no description'),
        ('text/markdown', 'text/x-rst', 'is text/x-rst'),
        ('# A sample', 'A sample', 'has 0 titles'),
        ('# A sample', '# A sample\n\n```python\nprint()', 'a code block without an end'),
        ('https://docs.example.org/', 'docs/index.md', "links to 'docs/index.md'"),
        ('[page](https:', '![page](http:', "links to 'http://docs.example.org/'"),
    ],
)
def test_wrong_metadata_or_readme_is_found(tmp_path: Path, before: str, after: str, problem: str):
    assert before in METADATA
    built = wheel(tmp_path, METADATA.replace(before, after))

    assert problem in '\n'.join(artefacts.problems(built, licence=LICENCE))


def test_an_extra_asks_for_what_the_extras_in_it_ask_for(tmp_path: Path):
    metadata = artefacts.metadata_of(wheel(tmp_path))

    names = {extra: {wanted.name for wanted in artefacts.requirements_of(metadata, extra)} for extra in (None, 'all')}

    assert names == {None: {'pydantic'}, 'all': {'pydantic', 'pyyaml'}}


def test_missing_addresses_are_to_do_before_the_first_upload(tmp_path: Path):
    points = artefacts.open_points(wheel(tmp_path))

    assert [point.rpartition(' ')[2] for point in points] == ['changelog.', 'documentation.', 'issues.']

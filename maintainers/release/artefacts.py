"""Check the contents of a wheel or an sdist before a release: `problems(file)` returns what is wrong, in sentences."""

import posixpath
import re
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from trove_classifiers import classifiers

from .descriptions import description_problems
from .environments import SUPPORTED

_TEST_FILE = re.compile(r'(^|/)(tests?/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$)')
_LEFTOVER = re.compile(r'(^|/)(__pycache__/|\.hatch/|\.coverage|[^/]*\.(pyc|orig|rej|swp)$)')


def problems(artefact: Path, *, licence: str) -> list[str]:
    """Return the problems of a wheel or an sdist, in sentences.

    Args:
        artefact: The wheel or the sdist.
        licence: The text that its licence file must have.
    """
    files = read(artefact)
    found = [f'has the test {name}' for name in files if _TEST_FILE.search(name)]
    found += [f'has the leftover {name}' for name in files if _LEFTOVER.search(name)]
    if artefact.suffix == '.whl':
        found += _wheel_problems(artefact, files, licence)
    else:
        found += _sdist_problems(artefact, files, licence)
    return [f'{artefact.name} {problem}.' for problem in found]


def read(artefact: Path) -> dict[str, bytes]:
    """Return the files of a wheel or an sdist, by name."""
    if artefact.suffix == '.whl':
        with zipfile.ZipFile(artefact) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith('/')}
    with tarfile.open(artefact) as archive:
        members = [member for member in archive if member.isfile()]
        return {member.name: (archive.extractfile(member) or _nothing()).read() for member in members}


def metadata_of(wheel: Path) -> Message:
    """Return the core metadata of a wheel."""
    (text,) = (body for name, body in read(wheel).items() if name.endswith('.dist-info/METADATA'))
    return Parser().parsestr(text.decode())


def requirements_of(metadata: Message, extra: str | None) -> list[Requirement]:
    """Return the requirements of an installation with this extra, with nested extras resolved."""
    own_name = canonicalize_name(metadata['Name'])
    found: list[Requirement] = []
    for text in metadata.get_all('Requires-Dist', []):
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({'extra': extra or ''}):
            continue
        if canonicalize_name(requirement.name) == own_name:
            found += [wanted for part in requirement.extras for wanted in requirements_of(metadata, part)]
        else:
            found.append(requirement)
    return found


def open_points(wheel: Path) -> list[str]:
    """Return what must be done before the first upload, but is not a problem earlier."""
    labels = {value.partition(',')[0].strip().lower() for value in metadata_of(wheel).get_all('Project-URL', [])}
    missing = [label for label in ('source', 'changelog', 'documentation', 'issues') if label not in labels]
    return [f'{wheel.name} has no project URL for {label}.' for label in missing]


def _wheel_problems(wheel: Path, files: dict[str, bytes], licence: str) -> list[str]:
    name, version, _, _ = parse_wheel_filename(wheel.name)
    info = [file for file in files if '.dist-info/' in file]
    code = [file for file in files if file not in info]
    packages = {file.split('/')[0] for file in code}
    found = [] if len(packages) == 1 else [f'installs {sorted(packages)} instead of one package']
    found += [f'has no {package}/py.typed' for package in sorted(packages) if f'{package}/py.typed' not in files]
    folders = {posixpath.dirname(file) for file in code if file.endswith('.py')}
    found += [f'has no {folder}/__init__.py' for folder in sorted(folders) if f'{folder}/__init__.py' not in files]
    licences = [file for file in info if file.endswith('.dist-info/licenses/LICENSE')]
    if [files[file].decode() for file in licences] != [licence]:
        found.append('has no licence file, or another text in it')
    metadata = metadata_of(wheel)
    if (canonicalize_name(metadata['Name'] or ''), metadata['Version']) != (name, str(version)):
        found.append(f'says of itself that it is {metadata["Name"]} {metadata["Version"]}')
    return found + _metadata_problems(metadata)


def _metadata_problems(metadata: Message) -> list[str]:
    found = _licence_problems(metadata) + _classifier_problems(metadata) + _requirement_problems(metadata)
    for value in metadata.get_all('Project-URL', []):
        label, _, address = (part.strip() for part in value.partition(','))
        if not re.match(r'https://[\w-]+(\.[\w-]+)+(/\S*)?$', address) or not 0 < len(label) <= 32:
            found.append(f'has the project URL {value!r}')
    if not (metadata['Summary'] or '').strip() or len(metadata['Summary']) > 512:
        found.append('has no summary of at most 512 characters')
    return found + description_problems(metadata.get_payload(), metadata['Description-Content-Type'])


def _licence_problems(metadata: Message) -> list[str]:
    expression = metadata['License-Expression'] or ''
    try:
        is_normal = canonicalize_license_expression(expression) == expression
    except InvalidLicenseExpression:
        is_normal = False
    return [] if is_normal else [f'has the licence {expression!r}, which is not an SPDX expression']


def _classifier_problems(metadata: Message) -> list[str]:
    given = metadata.get_all('Classifier', [])
    found = [f'has the unknown classifier {name!r}' for name in given if name not in classifiers]
    found += [f'has {name!r} besides its licence expression' for name in given if name.startswith('License ::')]
    if len(set(given)) != len(given):
        found.append('has a classifier twice')
    versions = [name.rpartition(' ')[2] for name in given if re.fullmatch(r'Programming Language .* 3\.\d+', name)]
    if tuple(versions) != SUPPORTED:
        found.append(f'names the Pythons {versions} and not {list(SUPPORTED)}')
    if metadata['Requires-Python'] != f'>={SUPPORTED[0]}':
        found.append(f'asks for Python {metadata["Requires-Python"]}')
    if 'Typing :: Typed' not in given:
        found.append('does not say that it is typed')
    return found


def _requirement_problems(metadata: Message) -> list[str]:
    extras = metadata.get_all('Provides-Extra', [])
    found: list[str] = []
    for extra in (None, *extras):
        for requirement in requirements_of(metadata, extra):
            operators = {specifier.operator for specifier in requirement.specifier}
            if requirement.url is not None:
                found.append(f'asks for {requirement.name} from an address, which an index refuses')
            elif not operators & {'>=', '==', '~='}:
                found.append(f'asks for {requirement.name} without a lowest version')
    if 'all' in extras:
        complete = {requirement.name for requirement in requirements_of(metadata, 'all')}
        for extra in extras:
            if missing := {wanted.name for wanted in requirements_of(metadata, extra)} - complete:
                found.append(f'has {sorted(missing)} in the extra {extra!r} and not in all')
    return sorted(set(found))


def _sdist_problems(sdist: Path, files: dict[str, bytes], licence: str) -> list[str]:
    name, version = parse_sdist_filename(sdist.name)
    top = f'{name.replace("-", "_")}-{version}/'
    found = [f'has {file}, outside of {top}' for file in files if not file.startswith(top)]
    found += [f'has no {file}' for file in ('PKG-INFO', 'README.md', 'pyproject.toml') if f'{top}{file}' not in files]
    if files.get(f'{top}LICENSE', b'').decode() != licence:
        found.append('has no licence file, or another text in it')
    if not any(file.endswith('/py.typed') for file in files):
        found.append('has no py.typed')
    return found


def _nothing() -> tarfile.ExFileObject:
    raise AssertionError('a regular file of an archive can be read')

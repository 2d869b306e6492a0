"""The version: one literal in each package, which agree with each other and with the changelog.

python -m maintainers.release.versions                  prints it, or says what disagrees
python -m maintainers.release.versions --set 0.2.0      writes it everywhere, and closes the changelog's open section

Hatchling reads the literal, so a wheel can be built from an sdist without git; a test keeps the two the same.
"""

import argparse
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[2]
PACKAGES = ('pydantic_ai_slim/pydantic_ai_deferred/__init__.py', 'tool_approval/tool_approval/__init__.py')
LOOP_REQUIREMENT = 'tool_approval/pyproject.toml'

_LITERAL = re.compile(r"^__version__ = '([^']*)'$", re.MULTILINE)
_SECTION = re.compile(r'^## \[([^\]]+)\](?: - (\S+))?$', re.MULTILINE)
_BOUND = re.compile(r'"pydantic-ai-deferred-handler([^"]*)"')


def version_of(root: Path) -> Version:
    """Return the version of the first package. `problems` checks whether the others have the same."""
    return Version(_literal(root / PACKAGES[0]))


def problems(root: Path, *, is_release: bool = False) -> list[str]:
    """Return the contradictions between versions and changelog, in sentences.

    Args:
        root: The repository.
        is_release: Whether the version is about to be published, so that its changelog section needs a date.
    """
    literals = {package: _literal(root / package) for package in PACKAGES}
    if len(set(literals.values())) > 1:
        return [f'The packages disagree: {literals}.']
    text = next(iter(literals.values()))
    try:
        version = Version(text)
    except InvalidVersion:
        return [f'{text!r} is not a version.']
    found = [] if str(version) == text else [f'{text!r} is not in its normal form, {version}.']
    return [*found, *_bound_problems(root, version), *_changelog_problems(root, version, is_release=is_release)]


def set_version(root: Path, text: str, *, day: date) -> None:
    """Write a version to all places that state it, and date the open section of the changelog.

    Raises:
        ValueError: The version is not higher than all in the changelog, is not in its normal form, or the open section
            is empty. Nothing has been written.
    """
    version = Version(text)
    if str(version) != text:
        raise ValueError(f'{text!r} is not in its normal form, {version}')
    changelog = (root / 'CHANGELOG.md').read_text()
    released, is_open_empty = _sections(changelog)
    if released and version <= max(released):
        raise ValueError(f'{version} is not higher than {max(released)}')
    if is_open_empty:
        raise ValueError('the section Unreleased of CHANGELOG.md is empty: there is nothing to release')
    for package in PACKAGES:
        file = root / package
        file.write_text(_LITERAL.sub(f"__version__ = '{version}'", file.read_text()))
    requirement = root / LOOP_REQUIREMENT
    bound = f'"pydantic-ai-deferred-handler>={version},<{_next_minor(version)}"'
    requirement.write_text(_BOUND.sub(bound, requirement.read_text()))
    dated = changelog.replace('## [Unreleased]', f'## [Unreleased]\n\n## [{version}] - {day.isoformat()}', 1)
    (root / 'CHANGELOG.md').write_text(dated)


def _literal(file: Path) -> str:
    found = _LITERAL.findall(file.read_text())
    return found[0] if len(found) == 1 else f'{len(found)} lines with __version__'


def _next_minor(version: Version) -> str:
    return f'{version.major}.{version.minor + 1}'


def _bound_problems(root: Path, version: Version) -> list[str]:
    bounds = _BOUND.findall((root / LOOP_REQUIREMENT).read_text())
    if not bounds:
        return [f'{LOOP_REQUIREMENT} does not ask for pydantic-ai-deferred-handler.']
    found: list[str] = []
    for bound in bounds:
        allowed = SpecifierSet(bound, prereleases=True)
        if version not in allowed:
            found.append(f'{LOOP_REQUIREMENT} asks for a loop of {bound!r}, which {version} is not.')
        # Both are developed together: a later minor version of the loop is not tested with this one.
        if Version(_next_minor(version)) in allowed:
            found.append(f'{LOOP_REQUIREMENT} asks for a loop of {bound!r}, which allows {_next_minor(version)} too.')
    return found


def _sections(changelog: str) -> tuple[list[Version], bool]:
    """Return the released versions in their order, newest first, and whether the open section is empty."""
    titles = list(_SECTION.finditer(changelog))
    open_text = ''
    released: list[Version] = []
    for title, following in zip(titles, [*titles[1:], None], strict=True):
        if title[1] == 'Unreleased':
            open_text = changelog[title.end() : following.start() if following else None]
        else:
            released.append(Version(title[1]))
    return released, not re.search(r'^- ', open_text, re.MULTILINE)


def _changelog_problems(root: Path, version: Version, *, is_release: bool) -> list[str]:
    changelog = (root / 'CHANGELOG.md').read_text()
    titles = _SECTION.findall(changelog)
    released, is_open_empty = _sections(changelog)
    found = [f'CHANGELOG.md gives {name} no day.' for name, day in titles if name != 'Unreleased' and not _is_day(day)]
    if released != sorted(released, reverse=True):
        found.append('CHANGELOG.md does not begin with the newest version.')
    if released and version < released[0]:
        found.append(f'The packages are {version}, and CHANGELOG.md begins with {released[0]}.')
    if is_release and (not released or released[0] != version):
        found.append(f'CHANGELOG.md does not begin with {version}.')
    if is_release and not is_open_empty:
        found.append('CHANGELOG.md has entries under Unreleased.')
    return found


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def main(arguments: list[str]) -> None:
    """Print or set the version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--set', metavar='VERSION', help='write this version everywhere')
    options = parser.parse_args(arguments)
    if options.set:
        set_version(ROOT, options.set, day=datetime.now(UTC).date())
    if found := problems(ROOT, is_release=bool(options.set)):
        sys.exit('\n'.join(found))
    print(version_of(ROOT))


if __name__ == '__main__':
    main(sys.argv[1:])

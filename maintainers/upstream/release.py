"""Unpack a release of Pydantic AI in the layout of its repository: the installed one, or the newest."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

NAME = 'pydantic-ai-slim'
FOLDER = 'pydantic_ai_slim'
"""Folder of the distribution in the repository of Pydantic AI."""


class NoRelease(Exception):
    """The files of the installed release are not available, or are not those of the release."""


class Unknown(Exception):
    """The package index did not answer as expected. This is a fault of the network, not of the patches."""


def unpack_installed(folder: Path) -> str:
    """Copy the installed release to `folder/pydantic_ai_slim/`, and return its version.

    Raises:
        NoRelease: It is not installed from a wheel, or a file was changed since.
    """
    installed = distribution(NAME)
    found = False
    for path in installed.files or ():
        if path.parts[0] != 'pydantic_ai' or path.hash is None:
            continue
        content = Path(str(installed.locate_file(path))).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.new(path.hash.mode, content).digest()).rstrip(b'=').decode()
        if digest != path.hash.value:
            raise NoRelease(f'{path} is not as {NAME} {installed.version} has it; install that release anew')
        _write(folder, str(path), content)
        found = True
    if not found:
        raise NoRelease(f'{NAME} {installed.version} is not installed from a wheel, so its files are not known')
    return installed.version


def newest_version() -> str:
    """Return the newest release that pip finds, without pre-releases.

    Raises:
        Unknown: The index did not answer, or not as expected.
    """
    listed = _pip('index', 'versions', NAME)
    found = re.match(rf'{re.escape(NAME)} \((\d[\w.]*)\)', listed)
    if found is None:
        raise Unknown(f'`pip index versions {NAME}` did not name a version; it said: {listed.strip()[:200]!r}')
    return found[1]


def download(version: str, folder: Path) -> Path:
    """Download the wheel of a release to `folder`.

    Raises:
        Unknown: There is no such wheel.
    """
    _pip('download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', str(folder), f'{NAME}=={version}')
    wheels = list(folder.glob('*.whl'))
    if len(wheels) != 1:
        raise Unknown(f'pip gave {len(wheels)} wheels of {NAME} {version}')
    return wheels[0]


def unpack_wheel(wheel: Path, folder: Path) -> None:
    """Copy the release in a wheel to `folder/pydantic_ai_slim/`.

    Raises:
        NoRelease: A file of the wheel would be written outside of `folder`.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith('pydantic_ai/') and not name.endswith('/'):
                _write(folder, name, archive.read(name))


def _write(folder: Path, path: str, content: bytes) -> None:
    parts = PurePosixPath(path).parts
    if '..' in parts:
        raise NoRelease(f'{path} is outside of the release')
    target = folder.joinpath(FOLDER, *parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _pip(*arguments: str) -> str:
    command = [sys.executable, '-m', 'pip', '--disable-pip-version-check', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ['no reason given']
        raise Unknown(f'`pip {" ".join(arguments)}` failed: {last[0]}')
    return done.stdout

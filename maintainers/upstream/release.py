"""Unpack the release that the patch is for, in the layout of upstream's repository."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

FOLDER = 'pydantic_ai_slim'
"""Folder of the distribution in upstream's repository."""
NAME = 'pydantic-ai-slim'
"""Name of the distribution."""


class NoRelease(Exception):
    """The files of the release are not available."""


def unpack_installed(folder: Path) -> str:
    """Copy the installed release to `folder/pydantic_ai_slim/`.

    Returns:
        Its version.

    Raises:
        NoRelease: It is not installed from a wheel, or was changed since.
    """
    installed = distribution(NAME)
    for path, content in _files(installed).items():
        _write(folder, path, content)
    return installed.version


def _files(installed: Distribution) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path in installed.files or ():
        if path.parts[0] != 'pydantic_ai' or path.hash is None:
            continue
        content = Path(str(installed.locate_file(path))).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.new(path.hash.mode, content).digest()).rstrip(b'=').decode()
        if digest != path.hash.value:
            raise NoRelease(f'{path} is not as {NAME} {installed.version} has it; install that release anew')
        files[str(path)] = content
    if not files:
        raise NoRelease(f'{NAME} {installed.version} is not installed from a wheel, so its files are not known')
    return files


def unpack_wheel(wheel: Path, folder: Path) -> str:
    """Copy the release in a wheel to `folder/pydantic_ai_slim/`.

    Returns:
        Its version.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith('pydantic_ai/') and not name.endswith('/'):
                _write(folder, name, archive.read(name))
    return wheel.name.split('-')[1]


def _write(folder: Path, path: str, content: bytes) -> None:
    parts = PurePosixPath(path).parts
    if '..' in parts or PurePosixPath(path).is_absolute():
        raise NoRelease(f'{path} is outside of the release')
    target = folder.joinpath(FOLDER, *parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)

"""Find and download the newest published release with pip."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .release import NAME


class Unknown(Exception):
    """The newest release could not be determined. This is a fault of the network, not of the patch."""


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


def download_newest(version: str, folder: Path) -> Path:
    """Download the wheel of a release to `folder`.

    Raises:
        Unknown: It could not be had.
    """
    _pip('download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', str(folder), f'{NAME}=={version}')
    wheels = list(folder.glob('*.whl'))
    if len(wheels) != 1:
        raise Unknown(f'pip gave {len(wheels)} wheels of {NAME} {version}')
    return wheels[0]


def _pip(*arguments: str) -> str:
    command = [sys.executable, '-m', 'pip', '--disable-pip-version-check', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ['no reason given']
        raise Unknown(f'`pip {" ".join(arguments)}` failed: {last[0]}')
    return done.stdout

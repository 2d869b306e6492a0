"""What tests ask of the system: its programs, and what runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which('git') is None, reason='git is not installed: make install-system')


def command_lines() -> dict[int, str]:
    """The command lines of all processes that have not ended, by their ids."""
    if not Path('/proc/self/cmdline').exists():
        listed = subprocess.run(['ps', '-axo', 'pid=,stat=,args='], capture_output=True, text=True, check=True)
        found = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
        return {int(number): args for number, stat, args in found if not stat.startswith('Z')}
    lines: dict[int, str] = {}
    for each in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            line = each.read_bytes().rstrip(b'\0').replace(b'\0', b' ').decode(errors='replace')
        except OSError:  # it has ended
            continue
        if line:
            lines[int(each.parent.name)] = line
    return lines

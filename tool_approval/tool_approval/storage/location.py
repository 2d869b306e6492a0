"""Where the user's own state is."""

from __future__ import annotations

import os
from pathlib import Path


def default_path() -> Path:
    """`tool-approval/approvals.json` in `XDG_STATE_HOME`, or in `~/.local/state`."""
    given = os.environ.get('XDG_STATE_HOME', '')
    # The XDG base directory specification: a relative path is invalid and to be ignored.
    state = Path(given) if os.path.isabs(given) else Path.home() / '.local' / 'state'
    return state / 'tool-approval' / 'approvals.json'

"""An empty home, which takes the place of the user's own: no test reads or writes what a user has."""

import os
import shutil
from pathlib import Path

FOLDERS = {
    'HOME': '.',
    'XDG_CACHE_HOME': '.cache',
    'XDG_CONFIG_HOME': '.config',
    'XDG_DATA_HOME': '.local/share',
    'XDG_RUNTIME_DIR': '.run',
    'XDG_STATE_HOME': '.local/state',
}
"""The variables that lead to what a user has, and the folders in the home that they name."""
_KEPT = {'.local', *FOLDERS.values()}


def furnish(home: Path) -> dict[str, str]:
    """Make the folders of a home, and return the variables that lead there."""
    for folder in FOLDERS.values():
        (home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    return {variable: os.path.normpath(home / folder) for variable, folder in FOLDERS.items()}


def clear(home: Path) -> list[str]:
    """Remove what is in the folders of a home, and return the paths of it."""
    found = sorted(path for path in home.rglob('*') if str(path.relative_to(home)) not in _KEPT)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return [str(path.relative_to(home)) for path in found]

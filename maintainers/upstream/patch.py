"""Write the patch completely or not at all, and apply it to a clean tree as a check."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .changes import CHANGES, changed, new_files
from .places import PlaceChanged
from .release import FOLDER

BUILD = Path(__file__).parents[2] / 'build'
PATCH = BUILD / 'deferred-tool-handler.patch'
PATCHED = BUILD / 'patched'
"""Tree of the release with the patch applied, on which tests run."""


def write_patch(release: Path, patch: Path) -> None:
    """Write the patch that brings our change into `release`.

    Args:
        release: A folder with the release in `pydantic_ai_slim/`; left alone.
        patch: Where the patch goes. One that was there before is gone if there is none for this release.

    Raises:
        PlaceChanged: A place in the release is not as expected; no patch is left.
    """
    patch.unlink(missing_ok=True)
    files = patched_files(release)
    patch.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=patch.parent) as temporary:
        tree = Path(temporary)
        _git(['init', '--quiet'], tree)
        for path in files:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            if (release / path).exists():
                shutil.copyfile(release / path, tree / path)
        _git(['add', '--all'], tree)
        for path, text in files.items():
            (tree / path).write_text(text, encoding='utf-8')
        _git(['add', '--all', '--intent-to-add'], tree)
        diff = _git(['diff', '--full-index'], tree)
        whole = tree / '.git' / 'patch'
        whole.write_bytes(diff)
        whole.replace(patch)


def patched_files(release: Path) -> dict[str, str]:
    """Return the text of every changed or new file, by its path in upstream's repository.

    Raises:
        PlaceChanged: A place in the release is not as expected.
    """
    root = release / FOLDER / 'pydantic_ai'
    for file in CHANGES:
        if not (root / file).is_file():
            raise PlaceChanged('the whole file', 'it is gone', file=f'pydantic_ai/{file}')
    new = new_files()
    for file in new:
        if (root / file).exists():
            raise PlaceChanged('a new file', 'the release has one of this name', file=f'pydantic_ai/{file}')
    files = {file: changed(file, (root / file).read_text(encoding='utf-8')) for file in CHANGES} | new
    return {f'{FOLDER}/pydantic_ai/{file}': text for file, text in files.items()}


def apply_patch(patch: Path, tree: Path) -> None:
    """Apply the patch to a clean tree, as a maintainer would.

    Raises:
        subprocess.CalledProcessError: It does not apply.
    """
    # In a separate repository: inside a folder that another one ignores, `git apply` would skip every file.
    _git(['init', '--quiet'], tree)
    _git(['apply', '--check', '--whitespace=error-all', str(patch.resolve())], tree)
    _git(['apply', str(patch.resolve())], tree)
    shutil.rmtree(tree / '.git')


def _git(arguments: list[str], folder: Path) -> bytes:
    # Neither a repository around the folder nor the user's configuration may have an influence.
    around = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
    environment = {**around, 'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_SYSTEM': os.devnull}
    return subprocess.run(['git', *arguments], cwd=folder, env=environment, capture_output=True, check=True).stdout

"""Run the tests of the packages that the compatibility layer serves, as published, on that layer.

python -m tests.approval.compat.published

Their sdists come from the package index, pinned by hash. All their tests run; one that cannot
pass would be deselected by its id, with the reason beside it.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from maintainers.release.environments import CommandError, run

REQUIREMENTS = """
pydantic-ai-blocking-approval==0.9.0 \
    --hash=sha256:86224d1e9ff6a482d43b3379eff326019ca7f6e69837e18dd1b9abc76582ae81
pydantic-ai-filesystem-sandbox==0.9.0 \
    --hash=sha256:d8d81f01d5c9330e4df24302055c989427e349634d553912dd16e9b45258b69e
"""
TIMEOUT_S = 120
"""Many times what either suite needs, so that an endless loop in the layer is an error."""
# Before pytest imports a test: the old name means our package from then on.
PYTEST = """
from tool_approval.compat.blocking_approval import install_alias
install_alias()
import pytest
raise SystemExit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:anyio']))
"""


def main() -> None:
    """Fetch both sdists and run their tests, each in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wanted = folder / 'requirements.txt'
        wanted.write_text(REQUIREMENTS)
        run(
            *(sys.executable, '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps'),
            *('--no-binary', ':all:', '--require-hashes', '--dest', folder, '--requirement', wanted),
        )
        for archive in sorted(folder.glob('*.tar.gz')):
            with tarfile.open(archive) as sdist:
                sdist.extractall(folder, filter='data')
            unpacked = folder / archive.name.removesuffix('.tar.gz')
            print(unpacked.name, flush=True)
            # In its own folder, where `tests` means its tests.
            subprocess.run([sys.executable, '-c', PYTEST], cwd=unpacked, check=True, timeout=TIMEOUT_S)


if __name__ == '__main__':
    try:
        main()
    except (CommandError, subprocess.SubprocessError) as error:
        sys.exit(str(error))

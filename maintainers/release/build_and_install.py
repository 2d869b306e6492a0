"""Build wheel and sdist of each distribution, look into them, and import what they install: the quick check.

python -m maintainers.release.build_and_install pydantic_ai_slim tool_approval
"""

import sys
import tempfile
import venv
from pathlib import Path

from . import artefacts
from .building import build, epoch
from .environments import ROOT, CommandError, run
from .installs import PROBE, package_of


def main(folders: list[str]) -> None:
    """Build and install the distribution in each folder."""
    licence = (ROOT / 'LICENSE').read_text()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            built = build(ROOT / folder, Path(scratch, folder), time=epoch())
            if found := [problem for artefact in built for problem in artefacts.problems(artefact, licence=licence)]:
                sys.exit('\n'.join(found))
            for artefact in built:
                environment = Path(scratch, f'{folder}{artefact.suffix}')
                venv.create(environment, with_pip=True)
                python = environment / 'bin' / 'python'
                # By pip, like most users.
                run(python, '-m', 'pip', 'install', '--quiet', artefact)
                run(python, '-I', PROBE, package_of(built[0]), cwd=Path(scratch))
                print(f'{artefact.name} installs and imports')


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except CommandError as error:
        sys.exit(str(error))

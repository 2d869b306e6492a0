"""Build wheel and sdist of each distribution, and import what they install from environments of their own.

python tests/release/build_and_install.py pydantic_ai_slim tool_approval
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

CHECK = """
import importlib.metadata, pathlib, sys
name, module = sys.argv[1:]
imported = __import__(module)
assert imported.__version__ == importlib.metadata.version(name), imported.__version__
assert pathlib.Path(imported.__file__).with_name('py.typed').exists()
assert 'site-packages' in imported.__file__, imported.__file__
"""


def run(*command: object) -> None:
    """Run a command, and stop with its output if it fails."""
    finished = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))}\n{finished.stdout}{finished.stderr}')


def check_contents(artefact: Path) -> None:
    """Refuse an artefact without licence and typing marker, or with tests in it."""
    if artefact.suffix == '.whl':
        with zipfile.ZipFile(artefact) as archive:
            names = archive.namelist()
    else:
        with tarfile.open(artefact) as archive:
            names = archive.getnames()
    for wanted in ('py.typed', 'LICENSE'):
        if not any(name.endswith(wanted) for name in names):
            sys.exit(f'{artefact.name} has no {wanted}')
    if unwanted := [name for name in names if 'tests/' in name or 'test_' in name]:
        sys.exit(f'{artefact.name} has {unwanted}')


def main(folders: list[str]) -> None:
    """Build and install each folder's distribution."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            target = Path(scratch, folder)
            # `python -m build` in a clean environment: the build has nothing but what pyproject.toml asks for.
            run(sys.executable, '-m', 'build', '--outdir', target, folder)
            artefacts = sorted(target.iterdir())
            assert [path.suffix for path in artefacts] == ['.whl', '.gz'], artefacts
            for artefact in artefacts:
                check_contents(artefact)
                environment = Path(scratch, f'{folder}{artefact.suffix}')
                venv.create(environment, with_pip=True)
                python = environment / 'bin' / 'python'
                run(python, '-m', 'pip', 'install', '--quiet', artefact)
                name = artefact.name.split('-')[0]
                module = {'pydantic_ai_deferred_handler': 'pydantic_ai_deferred'}.get(name, name)
                run(python, '-I', '-c', CHECK, name.replace('_', '-'), module)
                print(f'{artefact.name} installs and imports')


if __name__ == '__main__':
    main(sys.argv[1:])

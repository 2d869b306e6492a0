"""Check the artefacts before they are published: `make release-check`.

    python -m maintainers.release.check [--final] [--keep FOLDER] [--require 3.11 3.12 ...]

Needs `build`, `uv` and access to the package index.
"""

import argparse
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import artefacts, building, installs, versions
from .environments import ROOT, SUPPORTED, CommandError, find_python, run

FOLDERS = ('pydantic_ai_slim', 'tool_approval')


def check_builds(scratch: Path) -> tuple[list[Path], list[str]]:
    """Build each distribution twice, and return the wheels, next to their sdists, and the problems."""
    licence = (ROOT / 'LICENSE').read_text()
    time = building.epoch()
    wheels: list[Path] = []
    found: list[str] = []
    for name in FOLDERS:
        built = building.build(ROOT / name, scratch / name, time=time)
        again = building.build_again(ROOT / name, scratch / f'{name} again', time=time)
        found += building.differences(built, again)
        found += [problem for artefact in built for problem in artefacts.problems(artefact, licence=licence)]
        (scratch / 'dist').mkdir(exist_ok=True)
        copies = [Path(shutil.copy(artefact, scratch / 'dist')) for artefact in built]
        wheels.append(copies[0])
        print(f'built twice at {time}: {", ".join(artefact.name for artefact in built)}', flush=True)
    try:
        run(sys.executable, '-m', 'twine', 'check', '--strict', *sorted((scratch / 'dist').iterdir()))
    except CommandError as error:
        found.append(str(error))
    return wheels, found


def check_installs(wheels: list[Path], scratch: Path, required: list[str]) -> list[str]:
    """Install each wheel with each extra on each Python of this machine, and return the problems by place."""
    found: dict[str, list[str]] = {}
    jobs: list[tuple[str, Path, Path, str | None]] = []
    for version in SUPPORTED:
        python = find_python(version)
        if python is not None:
            for wheel in wheels:
                extras = artefacts.metadata_of(wheel).get_all('Provides-Extra', [])
                jobs += [(version, python, wheel, extra) for extra in (None, *extras)]
        elif version in required:
            found['a Python that is required is not present'] = [version]
        else:
            print(f'Python {version}: not present, NOT CHECKED', flush=True)

    def install(number: int) -> list[str]:
        _, python, wheel, extra = jobs[number]
        folder = scratch / f'environment {number}'
        problems = installs.problems(wheel, extra, python, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return problems

    with ThreadPoolExecutor(os.cpu_count()) as workers:
        for (version, _, wheel, extra), problems in zip(jobs, workers.map(install, range(len(jobs))), strict=True):
            place = f'{wheel.name.split("-")[0]}[{extra or ""}] on {version}'
            print(f'{place}: {"FAILS" if problems else "installs and imports"}', flush=True)
            for problem in problems:
                found.setdefault(problem, []).append(place)
    return [f'{problem} ({", ".join(places)})' for problem, places in found.items()]


def main(arguments: list[str]) -> None:
    """Build, check and install both distributions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--keep', type=Path, metavar='FOLDER', help='put the checked artefacts there')
    parser.add_argument('--require', nargs='*', default=[], choices=SUPPORTED, help='Pythons that have to be present')
    parser.add_argument('--final', action='store_true', help='for an upload: nothing may be left to do')
    options = parser.parse_args(arguments)
    found = versions.problems(ROOT, is_release=options.final)
    with tempfile.TemporaryDirectory() as folder:
        wheels, problems = check_builds(Path(folder))
        found += problems + check_installs(wheels, Path(folder), options.require)
        points = [point for wheel in wheels for point in artefacts.open_points(wheel)]
        if options.final:
            found += points
        else:
            print(*(f'to do before the first upload: {point}' for point in points), sep='\n')
        if found:
            sys.exit('\n'.join(['', f'{len(found)} problems:', *found]))
        if options.keep is not None:
            shutil.copytree(Path(folder, 'dist'), options.keep, dirs_exist_ok=True)
    print('release-check: no problems')


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except CommandError as error:
        sys.exit(str(error))

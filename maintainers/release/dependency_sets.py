"""Lock the sets of dependencies that are tested together, as files for pip in `requirements/`, and test them.

python -m maintainers.release.dependency_sets --lock    resolves them anew (make lock)
python -m maintainers.release.dependency_sets           tests the approval layer and the loop on each (make test-sets)

| set | is |
|---|---|
| minimal-core | `tool-approval` alone at its lowest pydantic |
| minimal | both distributions with all extras, each direct dependency at the lowest version that goes together |
| newest | the same at the newest versions of the day it was locked |

Indirect dependencies have their newest version in every set, because their lower bounds are not ours to promise.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .environments import ROOT, SUPPORTED, CommandError, create, find_python, run

FOLDER = ROOT / 'requirements'
SETS: dict[str, tuple[str, tuple[str, ...]]] = {
    'minimal-core': ('lowest-direct', ('./tool_approval',)),
    'minimal': ('lowest-direct', ('./pydantic_ai_slim', './tool_approval[all]')),
    'newest': ('highest', ('./pydantic_ai_slim', './tool_approval[all]')),
}
"""How to resolve each set, and the distributions in it."""
TOOLS = ('anyio', 'hypothesis', 'inline-snapshot', 'jsonschema', 'pytest', 'wcwidth')
"""Distributions that the tests import, in any version that fits the set."""
CORE_TESTS = (
    *('tests/approval', '--ignore=tests/approval/integrations', '--ignore=tests/approval/compat'),
    *('--ignore=tests/approval/tools', '--ignore=tests/approval/os_sandbox', '--ignore=tests/approval/ui'),
    *('--ignore=tests/approval/inbox', '--ignore=tests/approval/settings', '--ignore=tests/approval/cli'),
    *('--ignore=tests/approval/assistant', '--ignore=tests/approval/durable'),
)
ADAPTER_TESTS = (
    *('tests/approval/integrations', '--ignore=tests/approval/integrations/pydantic_ai/durable'),
    'tests/loop',
)

_PINNED = re.compile(r'^([A-Za-z0-9][^\n\\]*==[^\n\\]*)', re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    """Return the versions that a lock file pins on this Python, by normalised name."""
    requirements = [Requirement(line) for line in _PINNED.findall(text)]
    return {
        canonicalize_name(pinned.name): next(iter(pinned.specifier)).version
        for pinned in requirements
        if pinned.marker is None or pinned.marker.evaluate()
    }


def problems(text: str, direct: list[Requirement], *, is_minimal: bool) -> list[str]:
    """Return where a lock file contradicts the requirements of the packages, in sentences.

    Args:
        text: The lock file.
        direct: The requirements of the packages.
        is_minimal: Whether each must be at its lowest version.
    """
    locked = pins(text)
    found: list[str] = []
    for requirement in direct:
        version = locked.get(canonicalize_name(requirement.name))
        if version is None:
            found.append(f'{requirement.name} is not locked.')
        elif version not in requirement.specifier:
            found.append(f'{requirement.name} is locked at {version}, and {requirement.specifier} is asked for.')
        elif is_minimal and not _is_lowest(version, requirement):
            found.append(f'{requirement.name} is locked at {version}, above the lowest of {requirement.specifier}.')
    return found


def lock(name: str) -> None:
    """Resolve a set again, and write its file.

    Raises:
        CommandError: The set has no solution, or the index cannot be reached.
    """
    resolution, sources = SETS[name]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, 'requirements.in')
        source.write_text('\n'.join(sources))
        # Universal: one file with markers for every Python and system. Hashes: only the locked files are installed.
        run(
            *(sys.executable, '-m', 'uv', 'pip', 'compile', '--quiet', '--universal', '--generate-hashes'),
            *('--python-version', SUPPORTED[0], '--resolution', resolution, '--no-emit-package', 'tool-approval'),
            *('--no-emit-package', 'pydantic-ai-deferred-handler', '--custom-compile-command', 'make lock'),
            *('--no-annotate', '--output-file', FOLDER / f'{name}.txt', source),
        )


def test(name: str, python: Path, scratch: Path) -> str:
    """Run the tests on a set, and return the last line of pytest.

    Raises:
        CommandError: The set cannot be installed, or a test fails.
    """
    file = FOLDER / f'{name}.txt'
    sources = [str(ROOT / source.partition('[')[0]) for source in SETS[name][1]]
    interpreter = create(scratch / name, python, '--requirements', str(file), options=('--require-hashes',))
    install = (sys.executable, '-m', 'uv', 'pip', 'install', '--quiet', '--python', interpreter)
    run(*install, '--no-deps', *sources)
    # The pins, without their hashes, keep the set as it is while the tools are installed.
    constraints = scratch / f'{name}.constraints'
    constraints.write_text('\n'.join(_PINNED.findall(file.read_text())))
    run(*install, '--constraints', constraints, *TOOLS)
    selection = CORE_TESTS if name == 'minimal-core' else (*CORE_TESTS, *ADAPTER_TESTS)
    return run(interpreter, '-m', 'pytest', '-q', '-m', 'not slow', *selection).splitlines()[-1]


def _is_lowest(version: str, requirement: Requirement) -> bool:
    lowest = [specifier.version for specifier in requirement.specifier if specifier.operator in ('>=', '==', '~=')]
    # 2.10 and 2.10.0 are the same version.
    return any(Requirement(f'x=={bound}').specifier.contains(version, prereleases=True) for bound in lowest)


def main(arguments: list[str]) -> None:
    """Lock the sets, or test them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--lock', action='store_true', help='resolve the sets anew')
    parser.add_argument('--python', default=SUPPORTED[0], choices=SUPPORTED)
    parser.add_argument('sets', nargs='*', default=[], metavar='SET', help='all, if none is named')
    options = parser.parse_args(arguments)
    for name in options.sets or SETS:
        if options.lock:
            lock(name)
            print(f'requirements/{name}.txt: {len(pins((FOLDER / f"{name}.txt").read_text()))} distributions')
            continue
        python = find_python(options.python)
        if python is None:
            sys.exit(f'Python {options.python} is not present.')
        with tempfile.TemporaryDirectory() as scratch:
            print(f'{name} on Python {options.python}: {test(name, python, Path(scratch))}', flush=True)


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except CommandError as error:
        sys.exit(str(error))

"""A bill of materials for each distribution: what an installation with all extras has, as CycloneDX JSON.

python -m maintainers.release.sbom dist/sbom

The versions are those locked in `requirements/newest.txt`; what a user gets depends on the day they install.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from . import versions
from .dependency_sets import FOLDER, pins
from .environments import ROOT, CommandError, create, run

DISTRIBUTIONS = {
    'pydantic-ai-deferred-handler': ('pydantic_ai_slim', ('./pydantic_ai_slim',)),
    'tool-approval': ('tool_approval', ('./tool_approval[all]', './pydantic_ai_slim')),
}
"""Folder of each distribution, and the requirements to install for it."""


def described(bill: dict[str, Any], *, version: str) -> dict[str, Any]:
    """Return the bill with the version of its distribution, which pyproject.toml leaves to the build."""
    component = bill['metadata']['component']
    subject = {**component, 'version': version, 'purl': f'pkg:pypi/{component["name"]}@{version}'}
    return {**bill, 'metadata': {**bill['metadata'], 'component': subject}}


def problems(bill: dict[str, Any], *, name: str, installed: dict[str, str]) -> list[str]:
    """Return the differences between a bill and the installation, in sentences.

    Args:
        bill: The bill of materials.
        name: The distribution of the bill.
        installed: The versions of all other distributions in the environment, by normalised name.
    """
    subject = bill['metadata']['component']
    found = [] if subject['name'] == name and subject.get('version') else [f'The bill is not about {name}.']
    listed = {canonicalize_name(component['name']): component.get('version') for component in bill['components']}
    for missing in sorted(installed.keys() - listed.keys()):
        found.append(f'{missing} is installed and not listed.')
    for other in sorted(other for other in listed.keys() & installed.keys() if listed[other] != installed[other]):
        found.append(f'{other} is listed as {listed[other]} and installed as {installed[other]}.')
    found += [
        f'{component["name"]} has no licence.' for component in bill['components'] if not component.get('licenses')
    ]
    return found


def write(name: str, target: Path, scratch: Path) -> list[str]:
    """Install a distribution, write its bill, and return the problems of the bill.

    Raises:
        CommandError: The distribution cannot be installed, or the bill is not valid CycloneDX.
    """
    folder, sources = DISTRIBUTIONS[name]
    constraints = scratch / 'constraints.txt'
    locked = pins((FOLDER / 'newest.txt').read_text())
    constraints.write_text('\n'.join(f'{pinned}=={version}' for pinned, version in locked.items()))
    python = Path(sys.executable)
    interpreter = create(scratch / name, python, *sources, options=('--constraints', constraints))
    bill = run(
        *(sys.executable, '-m', 'cyclonedx_py', 'environment', '--output-reproducible', '--output-format', 'JSON'),
        *('--mc-type', 'library', '--pyproject', ROOT / folder / 'pyproject.toml', interpreter),
    )
    complete = described(json.loads(bill), version=str(versions.version_of(ROOT)))
    listing = json.loads(run(sys.executable, '-m', 'uv', 'pip', 'list', '--format', 'json', '--python', interpreter))
    installed = {canonicalize_name(one['name']): one['version'] for one in listing}
    del installed[name]
    target.mkdir(parents=True, exist_ok=True)
    (target / f'{name}.cdx.json').write_text(json.dumps(complete, indent=2, sort_keys=True) + '\n')
    print(f'{name}.cdx.json: {len(complete["components"])} components')
    return problems(complete, name=name, installed=installed)


def main(target: Path) -> None:
    """Write the bills of both distributions."""
    with tempfile.TemporaryDirectory() as scratch:
        if found := [problem for name in DISTRIBUTIONS for problem in write(name, target, Path(scratch))]:
            sys.exit('\n'.join(found))


if __name__ == '__main__':
    try:
        main(Path(sys.argv[1]))
    except CommandError as error:
        sys.exit(str(error))

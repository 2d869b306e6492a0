"""Install wheels in clean environments, on every Python and with every extra, and import everything."""

import json
from email.message import Message
from pathlib import Path
from typing import Any

from .artefacts import metadata_of, read, requirements_of
from .environments import CommandError, create, run

PROBE = Path(__file__).with_name('probe.py')


def problems(wheel: Path, extra: str | None, python: Path, scratch: Path) -> list[str]:
    """Return the problems of installing and importing a wheel, in sentences.

    Args:
        wheel: The wheel. Distributions that it needs and that are on no index are in the same folder.
        extra: The extra to install, or `None`.
        python: The interpreter.
        scratch: An empty folder for the environment.
    """
    wanted = f'{wheel}[{extra}]' if extra is not None else str(wheel)
    try:
        interpreter = create(scratch, python, wanted, options=('--find-links', wheel.parent))
        metadata = metadata_of(wheel)
        libraries = sorted({requirement.name for requirement in requirements_of(metadata, extra)})
        # Isolated (-I), so that neither this folder nor the user's site-packages provide a module.
        report = json.loads(run(interpreter, '-I', PROBE, package_of(wheel), *libraries, cwd=scratch))
    except CommandError as error:
        return [str(error).replace(str(scratch), '.').replace(str(wheel.parent), '.')]
    return [problem.replace(str(scratch), '.') for problem in report_problems(report, metadata, extra)]


def package_of(wheel: Path) -> str:
    """Return the name of the package that a wheel installs."""
    (package,) = {name.split('/')[0] for name in read(wheel) if '.dist-info/' not in name}
    return package


def report_problems(report: dict[str, Any], metadata: Message, extra: str | None) -> list[str]:
    """Return the problems in the report of a probe.

    A public module may fail with the name of an extra that was not installed, and a private one with the library. With
    all extras, no module may fail.
    """
    extras = set(metadata.get_all('Provides-Extra', []))
    installed = _extras_with(metadata, extra)
    package = report['package']
    found: list[str] = []
    if report['version'] != metadata['Version']:
        found.append(f'the package says that it is {report["version"]}, its metadata {metadata["Version"]}')
    for module, failure in report['failures'].items():
        is_library_missing = failure['error'] == 'ModuleNotFoundError' and failure['library'] != package
        if is_library_missing and not failure['is_public'] and installed != extras:
            continue
        if failure['error'] != 'MissingExtraError':
            found.append(f'{module} does not import: {failure["error"]}: {failure["text"]}')
        elif failure['extra'] not in extras:
            found.append(f'{module} asks for the extra {failure["extra"]!r}, which does not exist')
        elif failure['extra'] in installed:
            found.append(f'{module} asks for the extra {failure["extra"]!r}, which is installed')
    return found


def _extras_with(metadata: Message, extra: str | None) -> set[str]:
    """Return the extras whose requirements are all installed together with this one."""
    installed = {requirement.name for requirement in requirements_of(metadata, extra)}
    extras = metadata.get_all('Provides-Extra', [])
    return {each for each in extras if {wanted.name for wanted in requirements_of(metadata, each)} <= installed}

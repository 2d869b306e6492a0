"""Import the modules of a package and the libraries of an extra in a clean environment, and print what fails.

python -I probe.py PACKAGE DISTRIBUTION...
"""

import importlib
import importlib.machinery
import importlib.metadata
import json
import pkgutil
import sys
from pathlib import Path


def failure_of(module: str) -> dict[str, str] | None:
    """Import a module, and return how the import failed, or `None`."""
    try:
        importlib.import_module(module)
    except Exception as error:
        return {
            'error': type(error).__name__,
            'text': str(error),
            'extra': getattr(error, 'extra', ''),
            'library': (getattr(error, 'name', '') or '').partition('.')[0],
        }
    return None


def modules_of(package: str) -> dict[str, Path]:
    """Return the file of every module of an installed package, even if the package cannot be imported."""
    folder = Path(next(iter(importlib.machinery.PathFinder.find_spec(package).submodule_search_locations)))
    assert 'site-packages' in folder.parts, folder
    files = {
        '.'.join(file.relative_to(folder.parent).with_suffix('').parts).removesuffix('.__init__'): file
        for file in sorted(folder.rglob('*.py'))
    }
    return {module: file for module, file in files.items() if not module.endswith('.__main__')}


def is_public(file: Path) -> bool:
    """Whether a module lists its exports. Modules without such a list are private."""
    return '\n__all__ = ' in file.read_text()


def libraries_of(distribution: str) -> list[str]:
    """Return the top-level names that a distribution installs, without private and compiled parts."""
    found = importlib.metadata.packages_distributions()
    top_level = [name for name, owners in found.items() if distribution in [_normal(owner) for owner in owners]]
    importable = {module.name for module in pkgutil.iter_modules()}
    return [name for name in top_level if name in importable and not name.startswith('_')]


def _normal(name: str) -> str:
    return name.lower().replace('_', '-').replace('.', '-')


if __name__ == '__main__':
    package, *distributions = sys.argv[1:]
    modules = modules_of(package)
    wanted = [*modules, *(name for each in distributions for name in libraries_of(_normal(each)))]
    failures = {module: failure for module in wanted if (failure := failure_of(module)) is not None}
    for module, failure in failures.items():
        failure['is_public'] = module not in modules or is_public(modules[module])
    version = importlib.import_module(package).__version__
    print(json.dumps({'package': package, 'version': version, 'failures': failures}))

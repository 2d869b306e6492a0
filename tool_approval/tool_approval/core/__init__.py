"""Decide whether a tool call may run. Import public names from `tool_approval`."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` functions of a package that imports its exports on first use.

    Args:
        package: The package's `__name__`.
        homes: Maps each module to the names in it that are exported. Module names are relative to the package.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        whole = import_module(package)
        value = getattr(import_module(f'.{home_of[name]}', package), name)
        setattr(whole, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *home_of})

    return find, names

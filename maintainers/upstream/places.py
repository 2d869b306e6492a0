"""Find places in the source of the release by the structure of the code, or report that they have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import libcst as cst

Block: TypeAlias = cst.Module | cst.ClassDef | cst.FunctionDef
Change: TypeAlias = Callable[[Block], Block]
Edit: TypeAlias = Callable[[cst.Module], cst.Module]
"""Function that changes one place of a module, or raises `PlaceChanged`."""


class PlaceChanged(Exception):
    """A place that the patch changes is missing, different, or not unique."""

    def __init__(self, place: str, problem: str, *, file: str | None = None) -> None:
        """Name the place.

        Args:
            place: Where in the file, such as `Agent.iter`.
            problem: The deviation that was found.
            file: The file, once it is known; relative to the distribution's root.
        """
        super().__init__(place, problem, file)
        self.place = place
        self.problem = problem
        self.file = file

    def __str__(self) -> str:
        where = f'{self.file}: {self.place}' if self.file else self.place
        return f'{where}: {self.problem}'


def statements(block: Block) -> Sequence[cst.BaseStatement]:
    """Return the statements directly in a block.

    Raises:
        PlaceChanged: Its body is on the same line, so there is no block.
    """
    if isinstance(block, cst.Module):
        return block.body
    if isinstance(block.body, cst.IndentedBlock):
        return block.body.body
    raise PlaceChanged(block.name.value, 'its body has become a single line')


def with_statements(block: Block, body: Sequence[cst.BaseStatement]) -> Block:
    """Return the block with other statements."""
    if isinstance(block, cst.Module):
        return block.with_changes(body=body)
    return block.with_changes(body=block.body.with_changes(body=body))


def inside(scope: str, change: Change, *, found: int = 1, overloads: bool = False) -> Edit:
    """Change the definitions at a dotted path, such as `Agent.run`.

    Args:
        scope: The path; empty for the module itself.
        change: The function that changes each definition.
        found: The expected number of definitions.
        overloads: Whether `@overload`s count, and are changed, too.
    """
    path = scope.split('.') if scope else []

    def edit(module: cst.Module) -> cst.Module:
        changed, count = _descend(module, path, change, overloads=overloads)
        if count != found:
            raise PlaceChanged(scope, f'{found} definition(s) expected, {count} found')
        assert isinstance(changed, cst.Module)
        return changed

    return edit


def _descend(block: Block, path: list[str], change: Change, *, overloads: bool) -> tuple[Block, int]:
    if not path:
        return change(block), 1
    name, *rest = path
    body: list[cst.BaseStatement] = []
    count = 0
    for statement in statements(block):
        if (
            isinstance(statement, cst.ClassDef | cst.FunctionDef)
            and statement.name.value == name
            and (overloads or not is_overload(statement))
        ):
            changed, found = _descend(statement, rest, change, overloads=overloads)
            count += found
            body.append(cst.ensure_type(changed, type(statement)))
        else:
            body.append(statement)
    return with_statements(block, body), count


def is_overload(definition: cst.ClassDef | cst.FunctionDef) -> bool:
    """Whether the definition is an overload."""
    return any(
        isinstance(decorator.decorator, cst.Name) and decorator.decorator.value == 'overload'
        for decorator in definition.decorators
    )


def only(place: str, what: str, found: Sequence[int]) -> int:
    """Return the one index that was found.

    Raises:
        PlaceChanged: None was, or several.
    """
    if len(found) != 1:
        raise PlaceChanged(place, f'{what} expected once, found {len(found)} times')
    return found[0]

"""Define edits that insert statements, names and conditions at a place found by its structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import libcst as cst
import libcst.matchers as m

from .places import Block, Edit, PlaceChanged, inside, only, statements, with_statements

Matcher: TypeAlias = m.BaseMatcherNode
_NodeChange: TypeAlias = Callable[[cst.CSTNode], cst.CSTNode]


def statement(scope: str, code: str, *, what: str, before: Matcher | None = None, after: Matcher | None = None) -> Edit:
    """Insert statements directly into a block, next to the one statement that matches.

    Args:
        scope: The function, class or (empty) module.
        code: The statements, not indented.
        what: The statement next to which they are inserted, in words.
        before: A matcher for the statement, to insert before it.
        after: A matcher for the statement, to insert after it.
    """
    matcher = before if before is not None else after
    assert matcher is not None
    new = parsed(code)

    def insert(block: Block) -> Block:
        body = list(statements(block))
        place = scope or 'the module'
        index = only(place, what, [i for i, each in enumerate(body) if m.matches(each, matcher)])
        index += before is None
        if any(each.deep_equals(new[0]) for each in body):
            raise PlaceChanged(place, f'what goes beside the {what} is there already')
        body[index:index] = new
        return with_statements(block, body)

    return inside(scope, insert)


def method(scope: str, code: str, *, before: str) -> Edit:
    """Insert a method into a class, before another method."""
    matcher = m.FunctionDef(name=m.Name(before))

    def insert(block: Block) -> Block:
        body = list(statements(block))
        index = only(scope, f'method `{before}`', [i for i, each in enumerate(body) if m.matches(each, matcher)])
        new = cst.ensure_type(parsed(code)[0], cst.FunctionDef)
        body.insert(index, new.with_changes(leading_lines=[cst.EmptyLine(indent=False)]))
        return with_statements(block, body)

    return inside(scope, insert)


def nested(scope: str, code: str, *, block: Matcher, what: str) -> Edit:
    """Insert statements at the start of the one compound statement that matches, at any depth of a function.

    Args:
        scope: The function.
        code: The statements, not indented.
        block: A matcher for the compound statement.
        what: A description of the place, in words.
    """
    return _replacing(scope, block, what, lambda node: _started(node, code))


def _started(node: cst.CSTNode, code: str) -> cst.CSTNode:
    assert isinstance(node, cst.If | cst.Try | cst.FunctionDef)
    body = cst.ensure_type(node.body, cst.IndentedBlock)
    return node.with_changes(body=body.with_changes(body=[*parsed(code), *body.body]))


def handler(scope: str, code: str, *, of: Matcher, what: str) -> Edit:
    """Insert an `except` clause before the others of the one `try` that matches."""
    whole = cst.ensure_type(cst.parse_module(f'try:\n    pass\n{code}').body[0], cst.Try)

    def insert(node: cst.CSTNode) -> cst.CSTNode:
        handled = cst.ensure_type(node, cst.Try)
        return handled.with_changes(handlers=[*whole.handlers, *handled.handlers])

    return _replacing(scope, of, what, insert)


def finally_last(scope: str, code: str, *, what: str) -> Edit:
    """Append statements to the `finally` of a function's only `try` at its top level."""

    def append(function: Block) -> Block:
        body = list(statements(function))
        index = only(scope, what, [i for i, each in enumerate(body) if m.matches(each, m.Try(finalbody=m.Finally()))])
        tried = cst.ensure_type(body[index], cst.Try)
        final = cst.ensure_type(tried.finalbody, cst.Finally)
        block = cst.ensure_type(final.body, cst.IndentedBlock)
        body[index] = tried.with_changes(
            finalbody=final.with_changes(body=block.with_changes(body=[*block.body, *parsed(code)]))
        )
        return with_statements(function, body)

    return inside(scope, append)


def expression(scope: str, code: str, *, of: Matcher, what: str) -> Edit:
    """Replace the one expression that matches by an expression that contains it.

    Args:
        scope: The function.
        code: The new expression, in which `__` is replaced by the old one.
        of: A matcher for the old expression.
        what: A description of the place, in words.
    """

    def wrap(node: cst.CSTNode) -> cst.CSTNode:
        return cst.ensure_type(
            m.replace(cst.parse_expression(code), m.Name('__'), node), type(cst.parse_expression(code))
        )

    return _replacing(scope, of, what, wrap)


class _Replacing(m.MatcherDecoratableTransformer):
    def __init__(self, matcher: Matcher, change: _NodeChange) -> None:
        super().__init__()
        self.matcher = matcher
        self.change = change
        self.found = 0

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if m.matches(original_node, self.matcher):
            self.found += 1
            return self.change(updated_node)
        return updated_node


def _replacing(scope: str, matcher: Matcher, what: str, change: _NodeChange) -> Edit:
    def replace(block: Block) -> Block:
        replacing = _Replacing(matcher, change)
        changed = block.visit(replacing)
        only(scope, what, range(replacing.found))
        assert isinstance(changed, cst.Module | cst.ClassDef | cst.FunctionDef)
        return changed

    return inside(scope, replace)


def imported(name: str, *, of: Sequence[str]) -> Edit:
    """Import a name beside others of a module, in alphabetical order.

    Args:
        name: The name.
        of: The module, in each spelling it may have, such as `..tools` and `pydantic_ai.tools`.
    """

    def insert(module: Block) -> Block:
        body = list(statements(module))
        lines = [i for i, each in enumerate(body) if _imports_from(each, of)]
        index = only('imports', f'`from {of[0]} import ...`', lines)
        line = cst.ensure_type(body[index], cst.SimpleStatementLine)
        old = cst.ensure_type(line.body[0], cst.ImportFrom)
        assert not isinstance(old.names, cst.ImportStar)
        names = [cst.ensure_type(alias.name, cst.Name).value for alias in old.names]
        if name in names:
            raise PlaceChanged('imports', f'`{name}` is imported from `{of[0]}` already')
        # Classes come after constants and before functions, each in alphabetical order: the sort of the host's linter.
        position = next((i for i, each in enumerate(names) if _order(each) > _order(name)), len(names))
        if not 0 < position < len(names):
            raise PlaceChanged('imports', f'`{name}` would be the first or the last import from `{of[0]}`')
        new = cst.ImportAlias(cst.Name(name), comma=old.names[position - 1].comma)
        aliases = [*old.names[:position], new, *old.names[position:]]
        body[index] = line.with_changes(body=[old.with_changes(names=aliases)])
        return with_statements(module, body)

    return inside('', insert)


def _order(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name.lower())


def _imports_from(line: cst.BaseStatement, modules: Sequence[str]) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.ImportFrom(names=[*_]) as statement]):
            module = '.' * len(statement.relative)
            if statement.module is not None:
                module += cst.Module([]).code_for_node(statement.module)
            return module in modules
        case _:
            return False


def exported(name: str, *, before: str) -> Edit:
    """Add a name to the `__all__` of a module, before another one."""

    def insert(module: Block) -> Block:
        body = list(statements(module))
        matcher = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(m.Name('__all__'))], value=m.Tuple())])
        index = only('__all__', 'a tuple', [i for i, each in enumerate(body) if m.matches(each, matcher)])
        line = cst.ensure_type(body[index], cst.SimpleStatementLine)
        assign = cst.ensure_type(line.body[0], cst.Assign)
        names = cst.ensure_type(assign.value, cst.Tuple)
        found = [i for i, each in enumerate(names.elements) if m.matches(each.value, m.SimpleString(f"'{before}'"))]
        position = only('__all__', f'`{before}`', found)
        new = names.elements[position].with_changes(value=cst.SimpleString(f"'{name}'"))
        elements = [*names.elements[:position], new, *names.elements[position:]]
        body[index] = line.with_changes(body=[assign.with_changes(value=names.with_changes(elements=elements))])
        return with_statements(module, body)

    return inside('', insert)


def parsed(code: str) -> Sequence[cst.BaseStatement]:
    """Return the statements of `code`."""
    return cst.parse_module(code).body  # type: ignore[return-value]

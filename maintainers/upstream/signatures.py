"""Define edits of signatures, calls and docstrings: a keyword is declared, passed on and described."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import libcst as cst

from .places import Block, Edit, PlaceChanged, inside, only


def parameter(scope: str, code: str, *, before: str, found: int = 1) -> Edit:
    """Declare a keyword-only parameter, on a line of its own, in every overload too.

    Args:
        scope: The function.
        code: The parameter as it is written.
        before: The name of the keyword-only parameter it comes before.
        found: How many definitions the function has, overloads included.
    """

    def declare(function: Block) -> Block:
        assert isinstance(function, cst.FunctionDef)
        declared = list(function.params.kwonly_params)
        names = [each.name.value for each in declared]
        new = _parameter(code)
        if new.name.value in names:
            raise PlaceChanged(scope, f'there is a parameter `{new.name.value}` already')
        index = only(scope, f'keyword-only parameter `{before}`', [i for i, each in enumerate(names) if each == before])
        star = function.params.star_arg
        previous = declared[index - 1].comma if index else star.comma if isinstance(star, cst.ParamStar) else None
        declared.insert(index, new.with_changes(comma=_line_break(previous, scope)))
        return function.with_changes(params=function.params.with_changes(kwonly_params=declared))

    return inside(scope, declare, found=found, overloads=True)


def last_parameter(scope: str, code: str) -> Edit:
    """Declare the first keyword-only parameter of a function whose parameters are all positional."""

    def declare(function: Block) -> Block:
        assert isinstance(function, cst.FunctionDef)
        params = function.params
        if params.kwonly_params or len(params.params) < 2 or not isinstance(params.star_arg, cst.MaybeSentinel):
            raise PlaceChanged(scope, 'its parameters are no longer all positional')
        *others, last = params.params
        comma = _line_break(others[-1].comma, scope)
        return function.with_changes(
            params=params.with_changes(
                params=[*others, last.with_changes(comma=comma)],
                star_arg=cst.ParamStar(comma=comma),
                kwonly_params=[_parameter(code).with_changes(comma=last.comma)],
            )
        )

    return inside(scope, declare)


def _parameter(code: str) -> cst.Param:
    function = cst.ensure_type(cst.parse_module(f'def f(*, {code}): ...\n').body[0], cst.FunctionDef)
    return function.params.kwonly_params[0]


def _line_break(comma: object, place: str) -> cst.Comma:
    """Return a comma that ends a line as `comma` does, without the comments after it."""
    match comma:
        case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as space):
            return cst.Comma(whitespace_after=space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]))
        case _:
            raise PlaceChanged(place, 'not every parameter or argument has a line of its own any more')


def argument(scope: str, code: str, *, beside: str, calls: int = 1, of: str | None = None) -> Edit:
    """Pass a keyword on, on a line of its own after another one.

    Args:
        scope: The function that calls.
        code: The argument as it is written.
        beside: The keyword it comes after, in every call that has it.
        calls: How many calls have it.
        of: The called function, as written; `None` for any.
    """

    def pass_on(function: Block) -> Block:
        passing = _Passing(scope, code, beside=beside, of=of)
        changed = function.visit(passing)
        if passing.calls != calls:
            called = f'of `{of}` ' if of else ''
            raise PlaceChanged(scope, f'{calls} call(s) {called}with `{beside}=` expected, {passing.calls} found')
        assert isinstance(changed, cst.FunctionDef)
        return changed

    return inside(scope, pass_on)


class _Passing(cst.CSTTransformer):
    def __init__(self, place: str, code: str, *, beside: str, of: str | None) -> None:
        super().__init__()
        call = cst.ensure_type(cst.parse_expression(f'f({code})'), cst.Call)
        self.place = place
        self.new = call.args[0]
        self.beside = beside
        self.of = of
        self.calls = 0

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        found = [i for i, arg in enumerate(updated_node.args) if arg.keyword and arg.keyword.value == self.beside]
        if not found or (self.of is not None and _code(updated_node.func) != self.of):
            return updated_node
        self.calls += 1
        args = list(updated_node.args)
        if any(arg.keyword is not None and arg.keyword.deep_equals(_keyword(self.new)) for arg in args):
            raise PlaceChanged(self.place, f'`{_keyword(self.new).value}` is passed on already')
        comma = args[found[0]].comma
        if not (isinstance(comma, cst.Comma) and isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace)):
            return _one_a_line(updated_node, [*args, self.new])
        # Comments after the argument belong to the next one.
        args[found[0]] = args[found[0]].with_changes(comma=_line_break(comma, self.place))
        args.insert(found[0] + 1, self.new.with_changes(comma=comma))
        return updated_node.with_changes(args=args)


def _keyword(arg: cst.Arg) -> cst.Name:
    assert arg.keyword is not None
    return arg.keyword


def _one_a_line(call: cst.Call, args: Sequence[cst.Arg]) -> cst.Call:
    bare = [
        arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace('')) for arg in args
    ]
    lines = ''.join(f'    {_code(arg)},\n' for arg in bare)
    return cst.ensure_type(cst.parse_expression(f'{_code(call.func)}(\n{lines})'), cst.Call)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def described(scope: str, name: str, text: str, *, before: str) -> Edit:
    """Describe a parameter in the `Args` of a function's docstring.

    Args:
        scope: The function.
        name: The parameter.
        text: The description, in one paragraph.
        before: The parameter whose description it comes before.
    """

    def describe(function: Block) -> Block:
        assert isinstance(function, cst.FunctionDef)
        body = function.body.body
        match body[0] if body else None:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() as docstring)]) as line:
                pass
            case _:
                raise PlaceChanged(scope, 'it has no docstring any more')
        lines = docstring.value.split('\n')
        found = [i for i, each in enumerate(lines) if each.lstrip().startswith(f'{before}: ')]
        index = only(f"{scope}'s docstring", f'description of `{before}`', found)
        indent = lines[index][: -len(lines[index].lstrip())]
        wrapped = textwrap.wrap(f'{name}: {text}', 120 - len(indent) - 4)
        lines[index:index] = [f'{indent}{"    " if i else ""}{each}' for i, each in enumerate(wrapped)]
        described = docstring.with_changes(value='\n'.join(lines))
        first = line.with_changes(body=[cst.Expr(described)])
        return function.with_changes(body=function.body.with_changes(body=[first, *body[1:]]))

    return inside(scope, describe)

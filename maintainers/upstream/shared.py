"""Make new modules for upstream from modules of `pydantic_ai_deferred`, with upstream's imports."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import libcst as cst
import libcst.matchers as m

from .insertions import expression
from .places import Edit, PlaceChanged, inside, only, statements, with_statements

NEW_FILES = Path(__file__).parent / 'new_files'
_HOMES = {
    'DeferredToolRequests': '_deferred',
    'DeferredToolResults': '_deferred',
    'ToolApproved': '_deferred',
    'ToolDenied': '_deferred',
}
"""Upstream's modules with the names that ours import from `pydantic_ai`, whose package imports the new modules."""
_OWN = {'snapshot': '_deferred_snapshot', 'results': '_deferred_results'}
"""Names of our modules in upstream."""


def new_files() -> dict[str, str]:
    """Return the text of each new module, by its path below `pydantic_ai/`.

    Raises:
        PlaceChanged: A module of `pydantic_ai_deferred` is not as expected.
    """
    files = {path.name: path.read_text() for path in sorted(NEW_FILES.glob('*.py'))}
    files['_deferred_snapshot.py'] = _derived('snapshot', [])
    files['_deferred_results.py'] = _derived('results', [_without('carry_metadata'), _no_way_to_decline])
    return {name: formatted(text) for name, text in files.items()}


def _derived(name: str, edits: list[Edit]) -> str:
    spec = importlib.util.find_spec(f'pydantic_ai_deferred.{name}')
    assert spec is not None and spec.origin is not None
    module = cst.parse_module(Path(spec.origin).read_text())
    try:
        for edit in edits:
            module = edit(module)
    except PlaceChanged as error:
        raise PlaceChanged(error.place, error.problem, file=f'pydantic_ai_deferred/{name}.py') from None
    return module.with_changes(body=[_relative(each) for each in module.body]).code


def _relative(line: cst.BaseStatement | cst.SimpleStatementLine) -> cst.BaseStatement:
    match line:
        case cst.SimpleStatementLine(body=[cst.ImportFrom(names=[*aliases], relative=dots) as statement]):
            name = cst.Module([]).code_for_node(statement.module) if statement.module else ''
            if dots:
                home = _OWN[name]
            elif name == 'pydantic_ai':
                [home] = {_HOMES[cst.ensure_type(alias.name, cst.Name).value] for alias in aliases}
            elif name.startswith('pydantic_ai.'):
                home = name.removeprefix('pydantic_ai.')
            else:
                return line
            moved = statement.with_changes(module=cst.Name(home), relative=[cst.Dot()])
            return line.with_changes(body=[moved])
        case _:
            return line


def _without(function: str) -> Edit:
    def remove(module: cst.Module | cst.ClassDef | cst.FunctionDef) -> cst.Module | cst.ClassDef | cst.FunctionDef:
        body = list(statements(module))
        matcher = m.FunctionDef(name=m.Name(function))
        del body[only(function, 'the function', [i for i, each in enumerate(body) if m.matches(each, matcher)])]
        return with_statements(module, body)

    return inside('', remove)


_no_way_to_decline = expression(
    'check_results',
    repr('call.'),
    of=m.SimpleString(m.MatchIfTrue(lambda text: 'bubble_up' in text)),
    what='the advice to decline with `bubble_up`',
)
"""Removes the advice to decline with `bubble_up`, which upstream does not have."""


def formatted(text: str) -> str:
    """Return our text with imports sorted, and formatted as in upstream.

    Raises:
        subprocess.CalledProcessError: The text is not valid Python.
    """
    ruff = [sys.executable, '-m', 'ruff']
    quotes = ['--config', 'format.quote-style="single"', '--config', 'line-length=120']
    for arguments in (['check', '--select', 'I', '--fix'], ['format']):
        text = subprocess.run(
            [*ruff, *arguments, '--isolated', '--quiet', *quotes, '--stdin-filename', 'new.py', '-'],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text

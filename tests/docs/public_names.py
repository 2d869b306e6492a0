"""Read the public names, docstrings and raised errors of a package from its source."""

import ast
import functools
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import griffe

_DIRECTIVE = re.compile(r'^::: ([\w.]+)$', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class PublicName:
    """One name that a package exports, with its definition."""

    path: str
    """Where users import it from: `package.name`."""
    definition: griffe.Object


def public_packages(package: griffe.Object) -> Iterator[griffe.Object]:
    """The package and everything below it that has an `__all__` and no underscore in its path."""
    if package.exports is not None:
        yield package
    for member in package.members.values():
        if not member.is_alias and member.is_module and not member.name.startswith('_'):
            assert isinstance(member, griffe.Object)
            yield from public_packages(member)


def load(name: str, folder: Path) -> griffe.Object:
    """Read a package from its source, without importing it."""
    loaded = griffe.load(name, search_paths=[folder], docstring_parser='google')
    assert isinstance(loaded, griffe.Object)
    return loaded


def public_names(packages: Iterable[griffe.Object]) -> list[PublicName]:
    """Return what the packages export, without the version and what other projects define."""
    return [
        PublicName(path=f'{package.path}.{name}', definition=_definition(package, str(name)))
        for package in packages
        for name in package.exports or ()
        if name != '__version__' and _is_ours(package, str(name))
    ]


def described(pages: Iterable[Path]) -> set[str]:
    """The paths that the pages give to mkdocstrings."""
    return {path for page in pages for path in _DIRECTIVE.findall(page.read_text())}


def without_docstring(names: Iterable[PublicName]) -> list[str]:
    """Exported definitions, their public methods and their declared fields that say nothing about themselves."""
    found = [name.path for name in names if name.definition.docstring is None]
    for owner, member in _public_members(names):
        is_declared = not member.is_attribute or member.name in _declared_fields(owner)
        # A method that overrides a described one is described there.
        if member.docstring is None and is_declared and not _is_described_above(owner, member.name):
            found.append(member.path)
    return sorted(set(found))


def without_raises(names: Iterable[PublicName]) -> list[str]:
    """Functions with a `raise` whose error no `Raises:` section names: `path: Error`.

    Only what can be read: a `raise` in the body of the function itself, with the class written out.
    A raise that the same function catches is not seen as caught; what called functions raise is not seen.
    """
    found: list[str] = []
    for function, documented_by in _public_functions(names):
        documented = {error for docstring in documented_by for error in _documented_errors(docstring)}
        found += [
            f'{function.path}: {error}' for error in _raised_errors(function) if not _is_covered(error, documented)
        ]
    return sorted(set(found))


def _is_ours(package: griffe.Object, name: str) -> bool:
    member = package.members[name]
    return not isinstance(member, griffe.Alias) or member.target_path.split('.')[0] == package.path.split('.')[0]


def _definition(package: griffe.Object, name: str) -> griffe.Object:
    member = package.members[name]
    target = member.final_target if isinstance(member, griffe.Alias) else member
    assert isinstance(target, griffe.Object)
    return target


def _public_members(names: Iterable[PublicName]) -> Iterator[tuple[griffe.Class, griffe.Object]]:
    for name in names:
        if isinstance(name.definition, griffe.Class):
            for member in name.definition.members.values():
                if isinstance(member, griffe.Object) and not member.name.startswith('_'):
                    yield name.definition, member


def _public_functions(names: Iterable[PublicName]) -> Iterator[tuple[griffe.Function, list[griffe.Docstring]]]:
    """The functions a user calls, each with the docstrings in which its errors may stand."""
    names = list(names)
    for name in names:
        if isinstance(name.definition, griffe.Function):
            yield name.definition, _docstrings(name.definition)
        if isinstance(name.definition, griffe.Class):
            for method in ('__init__', '__new__', '__post_init__'):
                constructor = name.definition.members.get(method)
                if isinstance(constructor, griffe.Function):
                    yield constructor, _docstrings(constructor, name.definition)
    for owner, member in _public_members(names):
        if isinstance(member, griffe.Function):
            yield member, _docstrings(member, *_same_above(owner, member.name))


def _docstrings(*objects: griffe.Object) -> list[griffe.Docstring]:
    return [described.docstring for described in objects if described.docstring is not None]


def _same_above(owner: griffe.Class, name: str) -> list[griffe.Object]:
    above = [base.members.get(name) for base in owner.mro()]
    return [member for member in above if isinstance(member, griffe.Object)]


def _is_described_above(owner: griffe.Class, name: str) -> bool:
    return bool(_docstrings(*_same_above(owner, name))) or _is_described_elsewhere(owner, name)


def _is_described_elsewhere(owner: griffe.Class, name: str) -> bool:
    if len(owner.resolved_bases) == len(owner.bases):
        return False
    # Only the source of our own packages is read, so a base of another package is looked up at runtime.
    defined = getattr(importlib.import_module(owner.module.path), owner.name)
    return any(getattr(vars(base).get(name), '__doc__', None) for base in defined.__mro__[1:] if base is not object)


def _declared_fields(owner: griffe.Class) -> set[str]:
    """The fields that the class body annotates; assignments of methods to `self` do not count."""
    body = _node(owner).body if isinstance(_node(owner), ast.ClassDef) else []
    return {
        statement.target.id
        for statement in body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _documented_errors(docstring: griffe.Docstring) -> set[str]:
    sections = docstring.parse('google')
    raises = [section.value for section in sections if isinstance(section, griffe.DocstringSectionRaises)]
    return {str(error.annotation).split('.')[-1] for errors in raises for error in errors}


def _is_covered(error: str, documented: set[str]) -> bool:
    # A factory (`raise self._refused(...)`) has no class to compare: any section will do.
    return error in documented or (bool(documented) and (error[0] == '_' or error[0].islower()))


def _raised_errors(function: griffe.Function) -> set[str]:
    found: set[str] = set()
    for statement in _own_statements(_node(function)):
        if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
            called = statement.exc.func
            found.add(called.attr if isinstance(called, ast.Attribute) else ast.unparse(called))
    # A protocol's method or an exhaustive match that cannot be reached: no error of the function's.
    return found - {'AssertionError', 'NotImplementedError'}


def _own_statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_statements(child)


def _node(described: griffe.Object) -> ast.AST:
    assert isinstance(described.filepath, Path)
    wanted = (described.name, described.lineno)
    for node in ast.walk(_parsed(described.filepath)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if wanted in ((node.name, node.lineno), (node.name, first)):
                return node
    return ast.Module(body=[], type_ignores=[])  # made by a decorator, such as a dataclass's constructor


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())

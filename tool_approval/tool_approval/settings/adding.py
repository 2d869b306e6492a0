"""Add a rule to the text of a settings file, and leave every other character of the file as it is.

PyYAML reads the file and says where each value ends, but cannot write a file with its comments. ruamel.yaml writes
comments, but reads YAML 1.2, in which `no` is a name, and lays out the rest of the file anew. Here, lines are inserted,
and the result is read again: if it says anything else than the file and the rule, nothing is returned.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml

from tool_approval.core.canonical import canonical_json
from tool_approval.core.config import parse_document
from tool_approval.core.errors import ApprovalConfigError, NotCanonicalError

_PLAIN = re.compile(r'[A-Za-z_][A-Za-z0-9_./-]*')


def with_rule(text: str, path: Sequence[str], name: str | None, value: Mapping[str, Any]) -> str:
    """Return the text with a rule more.

    Args:
        text: The text of a settings file, without errors.
        path: Keys from the top of the file to the mapping or list that gets the rule. Keys that are missing are added.
        name: Key of the rule in the mapping, which must not have it; `None` to add the rule at the end of the list.
        value: The rule.

    Raises:
        ApprovalConfigError: The text is not YAML, or the rule cannot be added to it by inserting lines.
    """
    wanted = _added(parse_document(text)[0], path, name, value)
    result = _inserted(text, path, name, value)
    try:
        is_right = canonical_json(parse_document(result)[0]) == canonical_json(wanted)
    except (ApprovalConfigError, NotCanonicalError):
        is_right = False
    if not is_right:
        problem = 'the rule cannot be added without changing other lines; add it by hand'
        raise ApprovalConfigError(problem, key='.'.join(path))
    return result


def rule_lines(path: Sequence[str], name: str | None, value: Mapping[str, Any], *, indent: int = 0) -> list[str]:
    """Return the lines of a rule, under its keys."""
    lines = [f'{" " * (indent + 2 * depth)}{_flow(key)}:' for depth, key in enumerate(path)]
    start = '-' if name is None else f'{_flow(name)}:'
    return [*lines, f'{" " * (indent + 2 * len(path))}{start} {_flow(value)}']


def _added(document: dict[str, Any], path: Sequence[str], name: str | None, value: Mapping[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(document)
    *parents, last = path
    here = document
    for key in parents:
        if here.get(key) is None:
            here[key] = {}
        here = here[key]
    if name is None:
        here[last] = [*(here.get(last) or []), value]
    else:
        here[last] = {**(here.get(last) or {}), name: value}
    return document


def _inserted(text: str, path: Sequence[str], name: str | None, value: Mapping[str, Any]) -> str:
    # `parse_document` has refused aliases, tags and deep nesting, so nothing here takes long.
    node, parent, depth = yaml.compose(text, Loader=yaml.SafeLoader), None, 0
    while isinstance(node, yaml.MappingNode) and depth < len(path):
        found = next(((key, each) for key, each in node.value if key.value == path[depth]), None)
        if found is None:
            break
        parent, node = found
        depth += 1
    rest = path[depth:]
    is_at_top = depth == 0 and not (isinstance(node, yaml.CollectionNode) and node.flow_style)
    if node is None or (is_at_top and '\n...' not in text):
        return _after(text, len(text), rule_lines(path, name, value))
    if isinstance(node, yaml.CollectionNode) and node.flow_style:
        return _within(text, node, rest, name, value)
    if isinstance(node, yaml.CollectionNode):
        column = _mark(node.start_mark).column
    else:  # a key without a value
        column = 2 + (0 if parent is None else _mark(parent.start_mark).column)
    return _after(text, _end(node), rule_lines(rest, name, value, indent=column))


def _within(text: str, node: yaml.CollectionNode, rest: Sequence[str], name: str | None, value: object) -> str:
    inner: Any = value if name is None else {name: value}
    for at, key in enumerate(reversed(rest)):
        inner = {key: [inner] if name is None and at == 0 else inner}
    is_list = isinstance(node, yaml.SequenceNode)
    item = _flow(inner) if is_list else _flow(inner)[1:-1]
    at = _mark(node.end_mark).index - 1
    return f'{text[:at]}{", " if node.value else ""}{item}{text[at:]}'


def _end(node: yaml.Node) -> int:
    """Return the position after the last value in a node. A block itself ends only before what follows it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return _mark(node.end_mark).index


def _after(text: str, position: int, lines: Sequence[str]) -> str:
    end = '\r\n' if '\r\n' in text else '\n'
    is_line = position > 0 and text[position - 1] == '\n'  # after a text of several lines
    at = position if is_line else text.find('\n', position) + 1 or len(text)
    before = text[:at]
    return f'{before}{end if before and not before.endswith(chr(10)) else ""}{end.join(lines)}{end}{text[at:]}'


def _mark(mark: yaml.Mark | None) -> yaml.Mark:
    return cast('yaml.Mark', mark)  # set by the parser, although the stubs make it optional


def _flow(value: object) -> str:
    """Return a value in one line of YAML. Texts are in JSON's quotes unless they are words that YAML takes as texts."""
    if isinstance(value, Mapping):
        return f'{{{", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in cast("dict[str, Any]", value).items())}}}'
    if isinstance(value, list):
        return f'[{", ".join(map(_flow, cast("list[object]", value)))}]'
    if isinstance(value, str) and _PLAIN.fullmatch(value) and parse_document(f'word: {value}')[0] == {'word': value}:
        return value
    return json.dumps(value)

"""Read and write a subset of YAML that contains only JSON values, without aliases and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import yaml

from tool_approval.answering import UnreadableArguments
from tool_approval.display import escape_line

LONGEST = 200_000
"""Maximum number of characters in a text, because PyYAML takes seconds to parse longer texts."""


class NotYaml(UnreadableArguments):
    """The text is not a mapping in the supported subset of YAML. The message gives the reason and the line."""


def dump(args: Mapping[str, Any]) -> str:
    """Return arguments as YAML, with multi-line texts as blocks.

    Raises:
        NotYaml: The arguments are too long or nested too deeply.
    """
    try:
        text = _dumped(args, allow_unicode=True)
        # Characters that an editor would obey or hide are written as YAML escapes.
        if any(escape_line(line) != line for line in text.split('\n')):
            text = _dumped(args, allow_unicode=False)
    except RecursionError:
        raise NotYaml('nested too deeply') from None
    return text


def load(text: str) -> dict[str, Any]:
    """Parse a text into a mapping.

    Raises:
        NotYaml: The text is not a mapping in the supported subset of YAML.
    """
    if len(text) > LONGEST:
        raise NotYaml(f'longer than {LONGEST} characters')
    try:
        value: object = yaml.load(text, _Loader)  # a restricted safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = '' if mark is None else f' in line {mark.line + 1}'
        raise NotYaml(f'{error.problem or "invalid YAML"}{place}') from None
    except (yaml.YAMLError, ValueError):
        raise NotYaml('the text has a character or a number that is not allowed') from None
    except RecursionError:
        raise NotYaml('nested too deeply') from None
    if not isinstance(value, dict):
        raise NotYaml('the text is not a mapping of names to values')
    return cast('dict[str, Any]', value)


def _dumped(args: Mapping[str, Any], *, allow_unicode: bool) -> str:
    if len(str(args)) > LONGEST:
        raise NotYaml(f'longer than {LONGEST} characters')
    # Newer stubs leave parts of its signature unknown.
    dump = cast('Any', yaml).dump
    text: str = dump(
        dict(args), Dumper=_Dumper, allow_unicode=allow_unicode, sort_keys=False, width=10_000, default_flow_style=False
    )
    return text


class _Loader(yaml.SafeLoader):
    # Replaces the rules of YAML 1.1.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = cast('Any', self).peek_event()  # untyped in the stubs
        if isinstance(event, yaml.AliasEvent):
            raise _problem('an alias is not allowed', event.start_mark)
        if getattr(event, 'anchor', None) or getattr(event, 'tag', None):
            raise _problem('an anchor or a tag is not allowed', event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != 'tag:yaml.org,2002:str':
                raise _problem('a name must be text; put it in quotes', key.start_mark)
            if key.value in seen:
                raise _problem('a name appears twice', key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=True)


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _problem(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _text(dumper: Any, value: str) -> Any:
    return dumper.represent_scalar('tag:yaml.org,2002:str', value, style='|' if '\n' in value else None)


_Dumper.add_representer(str, _text)
# RFC 8259, section 6, for numbers.
for _kind, _pattern, _first in (
    ('null', r'null|~|', ['n', '~', '']),
    ('bool', r'true|false', ['t', 'f']),
    ('int', r'-?(?:0|[1-9][0-9]*)', list('-0123456789')),
    ('float', r'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?', list('-0123456789')),
):
    for _class in (_Loader, _Dumper):
        cast('Any', _class).add_implicit_resolver(f'tag:yaml.org,2002:{_kind}', re.compile(f'(?:{_pattern})$'), _first)

"""Find conditions that limit the arguments of calls to what was approved, and put them in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from tool_approval.core.arguments import HIDDEN
from tool_approval.core.canonical import canonical_json
from tool_approval.core.redact import REDACTED
from tool_approval.display.escape import is_plain

LONGEST_VALUE: Final = 100
"""Maximum number of characters of a value in a rule."""
_MOST_VALUES: Final = 5
_ARGUMENT: Final = re.compile(r'[A-Za-z_][A-Za-z0-9_]{0,63}')
_RUNS_CODE: Final = frozenset(
    [
        'argv',
        'bash',
        'cmd',
        'code',
        'command',
        'commands',
        'eval',
        'evaluate',
        'exec',
        'execute',
        'program',
        'python',
        'repl',
        'script',
        'shell',
        'sql',
        'terminal',
    ]
)
"""Words in names of tools and arguments that probably run text of the model."""
_AIMS: Final = frozenset(
    [
        'account',
        'address',
        'addresses',
        'bcc',
        'cc',
        'channel',
        'dest',
        'destination',
        'dir',
        'directory',
        'domain',
        'email',
        'file',
        'filename',
        'files',
        'folder',
        'group',
        'host',
        'hostname',
        'iban',
        'link',
        'location',
        'mail',
        'output',
        'path',
        'paths',
        'phone',
        'receiver',
        'recipient',
        'recipients',
        'server',
        'target',
        'to',
        'uri',
        'url',
        'user',
        'username',
    ]
)
"""Words in names of arguments that probably say where a tool writes or sends. Such an argument is limited to the values
that were approved."""


def conditions_of(
    given: Sequence[str], payloads: Sequence[Mapping[str, Any]], names: Collection[str]
) -> dict[str, Any] | None:
    """Return the conditions by argument, or `None` if an argument cannot be limited and must not be free.

    Args:
        given: The arguments of these calls.
        payloads: The calls' payloads, which all have these arguments.
        names: All arguments that calls of the tool have in the log.
    """
    when: dict[str, Any] = {}
    for name in sorted(names):
        if _ARGUMENT.fullmatch(name) is None or runs_code(name):
            return None
        condition = _condition(name, [each[name] for each in payloads]) if name in given else {'present': False}
        if condition is None:
            return None
        if condition:
            when[name] = condition
    return when


def _condition(name: str, values: Sequence[Any]) -> dict[str, Any] | None:
    """Return the condition for an argument, empty if it may have any value, or `None` if there is none."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = min(values), max(values)
        return {'is': low} if low == high else {'at_least': low, 'at_most': high}
    # No condition can limit what is in a list or an object.
    if not all(value is None or isinstance(value, str | bool) for value in values):
        return None
    texts = [value for value in values if isinstance(value, str)]
    if any(HIDDEN in text or REDACTED in text or _is_outside(text) for text in texts):
        return None
    distinct = {canonical_json(value): value for value in values}
    if len(distinct) > _MOST_VALUES:
        is_aim = not _AIMS.isdisjoint(_words(name)) or any(map(_is_address, texts))
        return None if is_aim else {}
    if any(not is_plain(text) or len(text) > LONGEST_VALUE for text in texts):
        return None
    several = [distinct[key] for key in sorted(distinct)]
    return {'is': several[0]} if len(several) == 1 else {'in': several}


def runs_code(name: str) -> bool:
    """Whether a tool or an argument with this name probably runs text of the model."""
    return not _RUNS_CODE.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    """Return the words of a name: `runCode` and `run_code` have the words `run` and `code`."""
    return [word.lower() for word in re.findall(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])', name)]


def _is_address(text: str) -> bool:
    """Whether a text could be an address to which a tool sends something."""
    return not re.search(r'\s', text) and ('@' in text or '://' in text)


def _is_outside(text: str) -> bool:
    """Whether a text could be a path outside of the directory."""
    return text.startswith(('/', '~', '\\', 'file:')) or '..' in re.split(r'[/\\]', text) or text[1:3] == ':\\'


def calls_with(tool: str, given: Sequence[str], when: Mapping[str, Any]) -> str:
    """Return in words which calls of a tool the conditions allow, if calls have the arguments `given`."""
    free = [name for name in given if name not in when]
    others = f'any {_listed(free, "and")}, and any other arguments' if free else 'any other arguments'
    if not when:
        return f'every call of `{tool}`, with {others}'
    several = sum('is' not in each and 'present' not in each for each in when.values())
    mixed = ' in any combination' if several > 1 else ''
    what = ', '.join(f'`{name}` {_in_words(condition)}' for name, condition in when.items())
    return f'calls of `{tool}` with {what}{mixed}, and with {others}'


def _in_words(condition: Mapping[str, Any]) -> str:
    match condition:
        case {'is': value}:
            return f'{canonical_json(value)}'
        case {'in': values}:
            return f'one of {", ".join(map(canonical_json, values))}'
        case {'present': _}:
            return 'not given'
        case _:
            return f'from {condition["at_least"]} to {condition["at_most"]}'


def _listed(names: Sequence[str], last: str) -> str:
    shown = [f'`{name}`' for name in names]
    return shown[0] if len(shown) == 1 else f'{", ".join(shown[:-1])} {last} {shown[-1]}'

"""What a document says as plain records, for a program that starts so often that the start of pydantic counts.

This is no second opinion on what a document may say. It reads what is certainly right, and says nothing of anything
else: that is for `read_settings`, which names the mistake. `test_plain.py` holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tool_approval.core.tool_rules import Approval

if TYPE_CHECKING:
    from tool_approval.tools.shell import ShellConfig

    from .model import SandboxSettings, Settings

_MODES: Final = {'interactive': 'interactive', 'strict': 'strict', 'auto_deny': 'strict'}
_NAME: Final = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}')
"""As for the names of roots in `tools.file_sandbox.config`."""
_LONGEST_TIMEOUT_S: Final = 86_400


@dataclass(frozen=True, kw_only=True)
class _ToolRule:
    approval: Approval | None = None
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Path:
    root: Path
    mode: Literal['ro', 'rw'] = 'ro'
    suffixes: tuple[str, ...] | None = None
    write_approval: bool = True
    read_approval: bool | Literal['blocked'] = False


@dataclass(frozen=True, kw_only=True)
class _Sandbox:
    paths: Mapping[str, _Path] = field(default_factory=dict[str, _Path])
    require_os_sandbox: bool = False
    os_sandbox_fallback: Literal['fail_fast', 'refuse_tools'] = 'fail_fast'


@dataclass(frozen=True, kw_only=True)
class _ShellDefault:
    allowed: bool = True
    approval: bool = True


@dataclass(frozen=True, kw_only=True)
class _ShellRule:
    pattern: str
    allowed: bool = True
    approval: bool = True
    description: str | None = None
    sandbox_paths: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.pattern.split())


@dataclass(frozen=True, kw_only=True)
class _Shell:
    default: _ShellDefault = _ShellDefault()
    rules: tuple[_ShellRule, ...] = ()
    network: bool = False
    timeout_s: float = 120


@dataclass(frozen=True, kw_only=True)
class _Settings:
    mode: Literal['interactive', 'strict'] = 'interactive'
    default: Literal['required', 'none'] | None = None
    tools: Mapping[str, _ToolRule] = field(default_factory=dict[str, _ToolRule])
    custom_tools: Mapping[str, _ToolRule] = field(default_factory=dict[str, _ToolRule])
    auto_grant: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    sandbox: _Sandbox | None = None
    shell: _Shell | None = None


# The records have the fields of the models, and nobody asks them for more than fields.
DEFAULT_SANDBOX = cast(
    'SandboxSettings', _Sandbox(paths={'workspace': _Path(root=Path(), mode='rw', read_approval=True)})
)
"""The same as in `model`."""
DEFAULT_SHELL = cast('ShellConfig', _Shell())
"""Of a file that says nothing of commands: every one is asked about."""


def plain_settings(document: Mapping[str, Any]) -> Settings | None:
    """What `read_settings` would return, as records with the same fields; `None` if that is not certain.

    A record has neither the methods of a model nor its properties.
    """
    try:
        return cast('Settings', _settings(document))
    except _NotCertain:
        return None


class _NotCertain(Exception):
    """Something is wrong, or rare."""


_Read = Callable[[object], Any]


def _settings(document: object) -> _Settings:
    read = _fields(
        document,
        mode=lambda mode: _MODES[_one_of(mode, *_MODES)],
        default=lambda default: None if default is None else _one_of(default, 'required', 'none'),
        tools=_tool_rules,
        custom_tools=_tool_rules,
        auto_grant=lambda grants: {} if grants is None else _values(grants, lambda items: list(_texts(items))),
        sandbox=lambda sandbox: _sandbox({} if sandbox is None else sandbox),
        shell=lambda shell: _shell({} if shell is None else shell),
    )
    settings = _Settings(**read)
    if settings.tools.keys() & settings.custom_tools.keys():
        raise _NotCertain
    return settings


def _tool_rules(rules: object) -> dict[str, _ToolRule]:
    return {} if rules is None else _values(rules, _tool_rule)


def _tool_rule(rule: object) -> _ToolRule:
    return _ToolRule(
        **_fields(
            {} if rule is None else rule,
            approval=lambda value: None if value is None else _one_of(value, 'required', 'none', 'blocked'),
            description=_text_or_none,
        )
    )


def _sandbox(sandbox: object) -> _Sandbox:
    return _Sandbox(
        **_fields(
            sandbox,
            paths=lambda paths: {} if paths is None else _values(paths, _path, _NAME),
            require_os_sandbox=_flag,
            os_sandbox_fallback=lambda value: _one_of(value, 'fail_fast', 'refuse_tools'),
        )
    )


def _path(path: object) -> _Path:
    read = _fields(
        path,
        root=_root,
        mode=lambda mode: _one_of(mode, 'ro', 'rw'),
        suffixes=lambda suffixes: None if suffixes is None else _suffixes(suffixes),
        write_approval=_need,
        read_approval=_need,
        approval=lambda approval: {'write': True, 'read': False} | _fields(approval, write=_word, read=_word),
    )
    both = {f'{use}_approval': need for use, need in read.pop('approval', {}).items()}
    if 'root' not in read or (both and read.keys() & both.keys()):
        raise _NotCertain
    read |= both
    if read.get('write_approval') == 'blocked':
        read |= {'write_approval': True, 'mode': 'ro'}
    return _Path(**read)


def _word(need: object) -> bool | str:
    return {'required': True, 'none': False, 'blocked': 'blocked'}[_one_of(need, 'required', 'none', 'blocked')]


def _need(need: object) -> bool | str:
    return _word(need) if type(need) is str else _flag(need)


def _root(root: object) -> Path:
    text = _text(root)
    if text.startswith('~') or '\0' in text:
        raise _NotCertain
    return Path(text)


def _suffixes(suffixes: object) -> tuple[str, ...]:
    texts = _texts(suffixes)
    if not texts or any(len(text) < 2 or text[0] != '.' or '/' in text or '\0' in text for text in texts):
        raise _NotCertain
    return texts


def _shell(shell: object) -> _Shell:
    return _Shell(
        **_fields(
            shell,
            default=lambda default: _ShellDefault(
                **_in_words(default, _fields(default, allowed=_flag, approval=_need))
            ),
            rules=lambda rules: tuple(map(_shell_rule, _list(rules))),
            network=_flag,
            timeout_s=_timeout,
        )
    )


def _shell_rule(rule: object) -> _ShellRule:
    read = _fields(
        rule,
        pattern=_pattern,
        allowed=_flag,
        approval=_need,
        description=_text_or_none,
        sandbox_paths=_texts,
        match=_texts,
        not_match=_texts,
    )
    if 'pattern' not in read:
        raise _NotCertain
    return _ShellRule(**_in_words(rule, read))


def _in_words(rule: object, read: dict[str, Any]) -> dict[str, Any]:
    """The two booleans of a rule whose `approval` may be a word, which sets both."""
    if type(cast('dict[str, object]', rule).get('approval')) is not str:
        return read
    if 'allowed' in read:
        raise _NotCertain
    return {**read, 'approval': True, 'allowed': False} if read['approval'] == 'blocked' else read


def _pattern(pattern: object) -> str:
    text = _text(pattern)
    if not (text.isascii() and text.isprintable() and text.split()) or '*' in text or '?' in text:
        raise _NotCertain
    return text


def _timeout(seconds: object) -> float:
    if type(seconds) not in (int, float) or not 0 < cast('float', seconds) <= _LONGEST_TIMEOUT_S:
        raise _NotCertain
    return float(cast('float', seconds))


def _fields(section: object, **known: _Read) -> dict[str, Any]:
    """The values of a mapping that has no other keys than these."""
    if type(section) is not dict or not cast('dict[str, object]', section).keys() <= known.keys():
        raise _NotCertain
    return {key: known[key](value) for key, value in cast('dict[str, object]', section).items()}


def _values(section: object, read: _Read, name: re.Pattern[str] | None = None) -> dict[str, Any]:
    """The values of a mapping of names."""
    if type(section) is not dict:
        raise _NotCertain
    named = {_text(key): read(value) for key, value in cast('dict[object, object]', section).items()}
    if name is not None and not all(map(name.fullmatch, named)):
        raise _NotCertain
    return named


def _list(items: object) -> list[object]:
    if type(items) is not list:
        raise _NotCertain
    return cast('list[object]', items)


def _texts(items: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(items)))


def _text_or_none(text: object) -> str | None:
    return None if text is None else _text(text)


def _text(text: object) -> str:
    # Half a character, which JSON can write, is a mistake.
    if type(text) is not str or not (text.isascii() or text.isprintable()):
        raise _NotCertain
    return text


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise _NotCertain
    return value


def _one_of(value: object, *allowed: str) -> str:
    if value not in allowed or type(value) is not str:
        raise _NotCertain
    return value

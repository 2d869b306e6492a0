"""Replace secrets in texts and JSON values."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

REDACTED = '[redacted]'
"""Replaces a secret."""

_NAMES = r'(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)'
"""Endings of names that indicate a secret in an assignment or option."""

_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)"""
"""A quoted text whose closing quote may be missing."""

# Only a quote directly followed by text opens another part: in `"password=a" b` it closes the enclosing quotes.
_MORE = rf"""(?:[\w$@%+./=!?*^~-]++|(?=["'][^\s,.;:&|)\]}}>"'\\]){_QUOTED})*+"""
"""Quoted and unquoted parts that a shell joins, because there is no blank between them: `a"b"`, `"a"b`, `'a'"b"`."""

_TRIPLE = r"""[a-z]{0,2}(?P<triple>(?:\\{0,4}"){3}|(?:\\{0,4}'){3})(?s:.)*?(?:(?P=triple)|\Z)"""
"""A text of any number of lines in triple quotes. The quotes may be escaped."""

_VALUE = (
    rf"""(?:{_TRIPLE}|\\{{1,4}}["'][^"'\\\n]+"""
    rf"""|(?:"(?:[^"\\\n]|\\.)++"?|'(?:[^'\\\n]|\\.)++'?|(?:""|'')(?=[\w"'$])|[^\s,;&"']++){_MORE})"""
)
"""The value after a secret's name: in escaped quotes, in quotes whose end may be missing, or unquoted."""

_LINE_END = r'(?:\r?\n|\\{1,4}n)'
"""A line end, either plain or escaped as in code and JSON."""

_BLOCK = (
    rf'[|>][-+\d]{{0,2}}[ \t]{{0,8}}(?:#[^\r\n\\]{{0,200}})?(?:{_LINE_END}[ \t]*+(?={_LINE_END}))*+{_LINE_END}'
    # The first line sets the indentation of the block, and a line with less indentation ends it.
    rf'(?P<indent>[ \t]{{1,80}}+)(?:(?!{_LINE_END}).)*+'
    rf'(?:{_LINE_END}(?:(?P=indent)(?:(?!{_LINE_END}).)*+|[ \t]*+(?={_LINE_END}|\Z)))*+'
)
"""A YAML block, from `|` or `>` to its last line."""

_PARAMETER = r"""[\w-]{1,40}\s{0,3}=\s{0,3}(?:"(?:[^"\\\n]|\\.)*+"?|\\{1,4}"[^"\\\n]*+(?:\\{1,4}")?|[^\s,"']++)"""
_PARAMETERS = rf'{_PARAMETER}(?:\s{{0,3}},\s{{0,8}}{_PARAMETER})*+'
"""Parameters of an authorization scheme: `username="ada", response="..."`."""

# Attack: a text that makes a pattern run for ever. Unbounded repetitions are therefore entered only where they will
# match, and parts that are tried at many places are bounded (`test_hostile_text_is_redacted_quickly`).
TOKEN_SHAPES: Mapping[str, re.Pattern[str]] = {
    'private key': re.compile(
        r'-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----'
        r'.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)',
        re.DOTALL,
    ),
    'JSON web token': re.compile(r'\beyJ[\w-]{8,1000}\.[\w-]{4,}+(?:\.[\w-]*+)+'),
    # An upper-case letter or a digit distinguishes keys from names such as `pk_orders_customer_id`.
    'OpenAI, Anthropic and Stripe keys': re.compile(r'\b(?:sk|pk|rk)[-_](?=[\w-]{0,100}[A-Z0-9])[\w-]{16,}'),
    'GitHub tokens': re.compile(r'\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,})'),
    'GitLab tokens': re.compile(r'\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-[\w-]{16,}(?:\.[\w-]+)*+'),
    'Slack tokens': re.compile(r'\b(?:xox[abceoprs]|xapp)-[\w-]{8,}|(?<=hooks\.slack\.com/services/)[\w/]{16,}'),
    'AWS access keys': re.compile(r'\b(?:AKIA|ASIA)[A-Z0-9]{16}\b'),
    'Google keys': re.compile(r'\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,})'),
    'npm and PyPI tokens': re.compile(r'\b(?:npm_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{16,})'),
    'passwords in addresses': re.compile(r'(?<=://)[^\s/:@]*+:[^\s/]+(?=@)'),
    'authorization headers': re.compile(
        # Any value after the header's name; after a scheme alone, only values unlike prose ("basic understanding").
        rf'(?i:\b(?:proxy-)?authorization\\{{0,4}}["\']?\s{{0,3}}[=:]\s{{0,3}}'
        rf'(?:"(?:[^"\\\n]|\\.)++"?|\'(?:[^\'\\\n]|\\.)++\'?'
        rf'|(?:\\{{1,4}}["\'])?(?:[a-z][a-z\d-]{{1,29}}\s{{1,3}})?(?:{_PARAMETERS}|[^\s"\',;]+))'
        rf'|\b(?:digest\s{{1,8}}(?=username)|oauth\s{{1,8}}(?=oauth_)|aws4-[a-z\d-]{{4,30}}\s{{1,8}}(?=credential))'
        rf'{_PARAMETERS}'
        r'|\b(?:set-)?cookie:[^\r\n"\']+)'
        r'|\b(?i:bearer|basic)\s{1,8}(?=[\w.~+/=-]{0,200}(?:\d|[a-z][A-Z]|=))[\w.~+/=-]{8,}'
    ),
    'signed addresses': re.compile(
        r'(?i)(?<=[?&])(?:x-(?:amz|goog)-(?:signature|credential)|signature|sig)=[^\s&"\'#]+'
    ),
    'assignments': re.compile(
        rf'(?i){_NAMES}\\{{0,4}}["\']?\s{{0,3}}'
        rf'(?::[ \t]{{0,3}}{_BLOCK}|(?::=|=>|[=:](?!=))\s{{0,3}}{_VALUE})'
    ),
    'command line options': re.compile(rf'(?i)(?<![\w-])--[\w-]{{0,30}}{_NAMES}\s{{1,3}}(?!-){_VALUE}'),
}
"""Patterns of secrets that are recognised anywhere in a text, by kind."""

SECRET_KEYS = re.compile(rf'(?i)(?:{_NAMES}|passwords|secrets|credentials?|authorization|cookies?)$')
"""Keys whose values are always replaced."""

_SHORTEST = 4
"""Excluded values with fewer characters than this are not replaced. Short values, such as "1", occur everywhere."""


_SHORTEST_TOKEN = 16
"""Single words shorter than this are not compared with the patterns. Most keys and many values are that short."""


class Redactor:
    """Replaces secrets: texts that look like tokens, values of secret keys, and values excluded from a payload."""

    def __init__(self, excluded: Iterable[object] = ()) -> None:
        """Also replace each text in `excluded` that has at least four characters, wherever it occurs."""
        texts = {text for value in excluded for text in _texts(value) if len(text) >= _SHORTEST}
        # Replace the longest text first, because one text may contain another.
        self._excluded = sorted({form for text in texts for form in _forms(text)}, key=len, reverse=True)

    @classmethod
    def of(cls, args: Mapping[str, Any], payload: Mapping[str, Any]) -> Redactor:
        """Return a redactor that also replaces the arguments that a request's payload excludes."""
        if args == payload:
            return _NOTHING
        kept = set(_texts(payload))
        return cls(text for text in _texts(args) if text not in kept)

    def text(self, text: str) -> str:
        """Return `text` with secrets replaced."""
        for secret in self._excluded:
            text = text.replace(secret, REDACTED)
        if len(text) < _SHORTEST_TOKEN and text.isidentifier():
            return text
        for shape in TOKEN_SHAPES.values():
            text = shape.sub(REDACTED, text)
        return text

    def value(self, value: object) -> Any:
        """Return a JSON value in which secrets are replaced, at any depth and also in keys."""
        items: Any = value
        if isinstance(value, str):
            return self.text(value)
        if type(value) in _HARMLESS or not isinstance(value, list | tuple | Mapping):
            return items
        if isinstance(value, list | tuple):
            return [self.value(item) for item in items]
        return {
            self.text(key): REDACTED if SECRET_KEYS.search(key) and item else self.value(item)
            for key, item in items.items()
        }


_NOTHING = Redactor()
_HARMLESS = frozenset({int, float, bool, type(None)})


def _texts(value: object) -> Iterator[str]:
    """Yield all strings and numbers in a value, even if the value contains itself. Such values are logged, too."""
    waiting: list[object] = [value]
    met: dict[int, object] = {}  # keeps the objects alive, so that their ids are not reused
    while waiting:
        item = waiting.pop()
        identity = id(item)
        match item:
            case str():
                yield item
            case bool():
                pass
            case int() | float():
                with contextlib.suppress(ValueError):  # an integer too long to be converted
                    yield str(item)
            case Mapping() if identity not in met:
                met[identity] = item
                waiting.extend(cast('Mapping[str, object]', item).values())
            case list() | tuple() if identity not in met:
                met[identity] = item
                waiting.extend(cast('list[object]', item))
            case _:
                pass


def _forms(text: str) -> Iterator[str]:
    """Yield the text unescaped, escaped as in descriptions, and escaped as in JSON."""
    yield text
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]

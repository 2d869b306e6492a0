"""What is written down of a call: payloads, never full arguments, and no secrets."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast

from .canonical import canonical_json, whole_characters
from .decision import ApprovalDecision, ApprovalMode
from .errors import NotCanonicalError
from .request import ApprovalRequest

REDACTED = '[redacted]'
"""What stands in the place of a secret."""

_NAMES = r'(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)'
"""How the names of secrets end, in assignments and options."""

_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)"""
"""In quotes that may not be closed."""

# Only a quote with text right behind it opens another part: in `"password=a" b` it closes what surrounds all of it.
_MORE = rf"""(?:[\w$@%+./=!?*^~-]++|(?=["'][^\s,.;:&|)\]}}>"'\\]){_QUOTED})*+"""
"""What goes on without a blank, as in a shell: `a"b"`, `"a"b`, `'a'"b"`."""

_TRIPLE = r"""[a-z]{0,2}(?P<triple>(?:\\{0,4}"){3}|(?:\\{0,4}'){3})(?s:.)*?(?:(?P=triple)|\Z)"""
"""In three quotes, which may be escaped, over any number of lines."""

_VALUE = (
    rf"""(?:{_TRIPLE}|\\{{1,4}}["'][^"'\\\n]+"""
    rf"""|(?:"(?:[^"\\\n]|\\.)++"?|'(?:[^'\\\n]|\\.)++'?|(?:""|'')(?=[\w"'$])|[^\s,;&"']++){_MORE})"""
)
"""A value behind such a name: in quotes that are escaped, in quotes that may not be closed, or bare."""

_LINE_END = r'(?:\r?\n|\\{1,4}n)'
"""Also as it is written in code and JSON."""

_BLOCK = (
    rf'[|>][-+\d]{{0,2}}[ \t]{{0,8}}(?:#[^\r\n\\]{{0,200}})?(?:{_LINE_END}[ \t]*+(?={_LINE_END}))*+{_LINE_END}'
    # The first line says how far the block is indented; lines that are indented less come after it.
    rf'(?P<indent>[ \t]{{1,80}}+)(?:(?!{_LINE_END}).)*+'
    rf'(?:{_LINE_END}(?:(?P=indent)(?:(?!{_LINE_END}).)*+|[ \t]*+(?={_LINE_END}|\Z)))*+'
)
"""A block of YAML, from `|` or `>` to its last line."""

_PARAMETER = r"""[\w-]{1,40}\s{0,3}=\s{0,3}(?:"(?:[^"\\\n]|\\.)*+"?|\\{1,4}"[^"\\\n]*+(?:\\{1,4}")?|[^\s,"']++)"""
_PARAMETERS = rf'{_PARAMETER}(?:\s{{0,3}},\s{{0,8}}{_PARAMETER})*+'
"""The parameters of an authorization scheme: `username="ada", response="..."`."""

# Whoever writes the text may want this to take for ever: what repeats without a bound is entered only where it will
# match, and what is tried at many places has a bound (`test_hostile_text_is_redacted_quickly`).
TOKEN_SHAPES: Mapping[str, re.Pattern[str]] = {
    'private key': re.compile(
        r'-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----'
        r'.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)',
        re.DOTALL,
    ),
    'JSON web token': re.compile(r'\beyJ[\w-]{8,1000}\.[\w-]{4,}+(?:\.[\w-]*+)+'),
    # An upper case letter or a digit tells them from names such as `pk_orders_customer_id`.
    'OpenAI, Anthropic and Stripe keys': re.compile(r'\b(?:sk|pk|rk)[-_](?=[\w-]{0,100}[A-Z0-9])[\w-]{16,}'),
    'GitHub tokens': re.compile(r'\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,})'),
    'GitLab tokens': re.compile(r'\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-[\w-]{16,}(?:\.[\w-]+)*+'),
    'Slack tokens': re.compile(r'\b(?:xox[abceoprs]|xapp)-[\w-]{8,}|(?<=hooks\.slack\.com/services/)[\w/]{16,}'),
    'AWS access keys': re.compile(r'\b(?:AKIA|ASIA)[A-Z0-9]{16}\b'),
    'Google keys': re.compile(r'\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,})'),
    'npm and PyPI tokens': re.compile(r'\b(?:npm_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{16,})'),
    'passwords in addresses': re.compile(r'(?<=://)[^\s/:@]*+:[^\s/]+(?=@)'),
    'authorization headers': re.compile(
        # By the header's name whatever it holds; by the scheme alone only what no prose has: "basic understanding".
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
"""The shapes of secrets that are recognised anywhere in a text, by what they are."""

SECRET_KEYS = re.compile(rf'(?i)(?:{_NAMES}|passwords|secrets|credentials?|authorization|cookies?)$')
"""Keys whose values are replaced whatever they look like."""

_SHORTEST = 4
"""Chosen: shorter excluded values ("1", "yes") are no secrets, and occur in everything."""


_SHORTEST_TOKEN = 16
"""No shape is a single shorter word, and most keys and many values are."""


class Redactor:
    """Replaces secrets: token shapes, the values of secret keys, and values that were excluded from a payload."""

    def __init__(self, excluded: Iterable[object] = ()) -> None:
        """Also replace the texts in `excluded`, wherever they appear, of four characters and more."""
        texts = {text for value in excluded for text in _texts(value) if len(text) >= _SHORTEST}
        # The longest first: one may contain another.
        self._excluded = sorted({form for text in texts for form in _forms(text)}, key=len, reverse=True)

    @classmethod
    def of(cls, args: Mapping[str, Any], payload: Mapping[str, Any]) -> Redactor:
        """For a request: what is among its arguments and not in its payload was excluded."""
        if args == payload:
            return _NOTHING
        kept = set(_texts(payload))
        return cls(text for text in _texts(args) if text not in kept)

    def text(self, text: str) -> str:
        """`text` without secrets."""
        for secret in self._excluded:
            text = text.replace(secret, REDACTED)
        if len(text) < _SHORTEST_TOKEN and text.isidentifier():
            return text
        for shape in TOKEN_SHAPES.values():
            text = shape.sub(REDACTED, text)
        return text

    def value(self, value: object) -> Any:
        """A JSON value without secrets: in texts at any depth, and in keys."""
        items: Any = value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in items]
        if type(value) is dict or isinstance(value, Mapping):
            return {
                self.text(key): REDACTED if SECRET_KEYS.search(key) and item else self.value(item)
                for key, item in items.items()
            }
        return items


_NOTHING = Redactor()


def _texts(value: object) -> Iterator[str]:
    """All texts and numbers within, also of what nests without end: a call with such arguments is logged too."""
    waiting: list[object] = [value]
    met: dict[int, object] = {}  # with the objects, so that no id comes up again
    while waiting:
        item = waiting.pop()
        identity = id(item)
        match item:
            case str():
                yield item
            case bool():
                pass
            case int() | float():
                with contextlib.suppress(ValueError):  # an integer that is too long to be written anywhere
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
    """How a text is written in descriptions, and in JSON."""
    yield text
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


Outcome = Literal['executed', 'failed', 'refused']
"""What came of a call: it ran, it ran and raised, or it was kept from running after all."""


def decision_entry(
    request: ApprovalRequest,
    decision: ApprovalDecision,
    *,
    digest: str | None,
    mode: ApprovalMode,
    is_remembered: bool,
) -> dict[str, Any]:
    """The entry of a decision.

    Args:
        request: What was decided.
        decision: What was decided of it, with `decided_at`.
        digest: What it is bound to; `None` for arguments that have no digest.
        mode: The controller's.
        is_remembered: Whether memory decided.
    """
    override = decision.override_args
    is_lasting = decision.is_lasting and not request.hides_arguments
    redactor = Redactor.of(request.args, request.payload)
    return {
        'event': 'decision',
        **_identity(request, digest),
        'payload': redactor.value(
            request.payload if digest is not None and request.payload is request.args else _writable(request.payload)
        ),
        'approved': decision.approved,
        'note': None if decision.note is None else _note(decision.note, request, decision, redactor),
        'has_changed_arguments': override is not None,
        'changed_payload': None if override is None else _changed(request, override, redactor),
        'remember': decision.remember if is_lasting else 'none',
        'remember_option': decision.remember_option if is_lasting else None,
        'is_remembered': is_remembered,
        'decided_by': decision.decided_by,
        'decided_at': None if decision.decided_at is None else decision.decided_at.isoformat(),
        'mode': mode,
    }


def _changed(request: ApprovalRequest, override_args: Mapping[str, Any], redactor: Redactor) -> Any:
    # Only what the payload has: an argument that is excluded there stays out of the log.
    args = {key: value for key, value in override_args.items() if key in request.payload}
    return Redactor.of(override_args, args).value(redactor.value(_writable(args)))


def outcome_entry(
    request: ApprovalRequest,
    outcome: Outcome,
    *,
    digest: str | None,
    error: BaseException | None,
    settled_by: str | None = None,
) -> dict[str, Any]:
    """The entry of what came of a call. Of `error` only the type is written: its text may quote arguments."""
    return {
        'event': 'outcome',
        **_identity(request, digest),
        'outcome': outcome,
        'error': None if error is None else type(error).__name__,
        **({} if settled_by is None else {'settled_by': whole_characters(settled_by)}),
    }


def _identity(request: ApprovalRequest, digest: str | None) -> dict[str, Any]:
    return {
        'tool_name': request.tool_name,
        'tool_call_id': request.tool_call_id,
        'run_id': request.run_id,
        'session_id': request.session_id,
        'caller': request.facts.caller,
        'lineage': [level.model_dump() for level in request.lineage],
        'digest': digest,
    }


def _note(note: str, request: ApprovalRequest, decision: ApprovalDecision, redactor: Redactor) -> str:
    of_changed = Redactor.of(decision.override_args or {}, request.payload)
    return whole_characters(of_changed.text(redactor.text(note)))


def _writable(payload: Mapping[str, Any]) -> Any:
    try:
        canonical_json(payload)
    except NotCanonicalError:
        return None
    return payload

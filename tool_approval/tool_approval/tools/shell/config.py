"""The shell's rules as they are configured."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

_GLOB: Final = frozenset('*?')


def _as_tuple(items: object) -> object:
    # YAML and JSON have lists; strict validation takes nothing but a tuple.
    return tuple(cast('list[object]', items)) if isinstance(items, list) else items


_Texts = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]

_WORDS: Final = {
    'required': {'approval': True},
    'none': {'approval': False},
    'blocked': {'allowed': False, 'approval': True},
}


class ShellDefault(BaseModel):
    """What holds for a command that no rule matches."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    allowed: bool = True
    """Whether such a command may run at all; `False` holds in every mode."""
    approval: bool = True
    """Whether consent is needed first. A configuration may write `required`, `none` or `blocked` instead of both."""

    @model_validator(mode='before')
    @classmethod
    def _in_words(cls, rule: Any) -> Any:
        if not isinstance(rule, dict):
            return rule
        given = cast('dict[str, Any]', rule)
        word = given.get('approval')
        if isinstance(word, str) and 'allowed' in given:
            raise ValueError('write `approval` in a word, or `allowed` and `approval` as true and false')
        return {**given, **_WORDS[word]} if isinstance(word, str) and word in _WORDS else given

    @field_validator('approval', mode='before')
    @classmethod
    def _is_no_word(cls, approval: Any) -> Any:
        if isinstance(approval, str):
            # Not a TypeError: pydantic reports a ValueError as a mistake of the file.
            raise ValueError('neither true nor false; use `required`, `none` or `blocked`')  # noqa: TRY004
        return approval


class ShellRule(ShellDefault):
    """What holds for the commands that begin with the words of `pattern`."""

    pattern: str
    """Words that a command begins with: `git status` is about `git status --short`, not about `git statusx`."""
    description: str | None = None
    """One line for the person who is asked."""
    arguments: Literal['listed', 'any'] = 'listed'
    """What a rule that approves covers behind its words: arguments that are listed as safe, or also those that are
    not listed."""
    sandbox_paths: _Texts = ()
    """Names of roots. The rule is skipped unless every path of the command lies in one of them."""
    match: _Texts = ()
    """Commands that the rule must decide; checked when the rules are compiled."""
    not_match: _Texts = ()
    """Commands that the rule must not decide; checked when the rules are compiled."""

    @field_validator('pattern')
    @classmethod
    def _is_words(cls, pattern: str) -> str:
        if not pattern.split():
            raise ValueError('a pattern has at least one word')
        if any(unicodedata.category(char)[0] == 'C' or (char.isspace() and char != ' ') for char in pattern):
            raise ValueError('a pattern is plain words with blanks between them')
        # Somebody who writes `rm *` means more than the command `rm *`, and would be guarded by less.
        if any(char in _GLOB for char in pattern):
            raise ValueError('a pattern is words, not a glob: it matches whatever follows them already')
        return pattern

    @property
    def words(self) -> tuple[str, ...]:
        """The pattern's words, at least one."""
        return tuple(self.pattern.split())

    @property
    def shown(self) -> str:
        """How messages call it."""
        return f'the rule `{self.pattern}`'


class ShellConfig(BaseModel):
    """All that is configured for the shell tool."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    default: ShellDefault = Field(default_factory=ShellDefault)
    """What holds where no rule matches."""
    rules: Annotated[tuple[ShellRule, ...], BeforeValidator(_as_tuple)] = ()
    """In order; the first that matches decides."""
    network: bool = False
    """Whether commands may use the network, where an OS sandbox can tell them otherwise."""
    timeout_s: float = Field(default=120, gt=0, le=86_400, allow_inf_nan=False)
    """How long a command may take, in seconds."""

    @field_validator('timeout_s', mode='before')
    @classmethod
    def _is_number(cls, seconds: Any) -> Any:
        return float(seconds) if isinstance(seconds, int) and not isinstance(seconds, bool) else seconds

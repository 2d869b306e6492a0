"""Configuration of the shell tool: rules for commands, and the default for all other commands."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tool_approval.core.offers import as_tuple

from .environment import may_be_passed

_GLOB: Final = frozenset('*?')

_PLAIN: Final = re.compile(r'[A-Za-z0-9_][\w.+-]*', re.ASCII)

_Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]

_WORDS: Final = {
    'required': {'approval': True},
    'none': {'approval': False},
    'blocked': {'allowed': False, 'approval': True},
}


class ShellDefault(BaseModel):
    """Default for commands that no rule matches."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    allowed: bool = True
    """Whether the command may run at all. `False` blocks the command in every mode."""
    approval: bool = True
    """Whether approval is needed. The word `required`, `none` or `blocked` sets both `allowed` and `approval`."""

    @model_validator(mode='before')
    @classmethod
    def _in_words(cls, rule: Any) -> Any:
        if not isinstance(rule, dict):
            return rule
        given = cast('dict[str, Any]', rule)
        word = given.get('approval')
        if isinstance(word, str) and 'allowed' in given:
            raise ValueError('leave out `allowed`, or make `approval` true or false')
        return {**given, **_WORDS[word]} if isinstance(word, str) and word in _WORDS else given

    @field_validator('approval', mode='before')
    @classmethod
    def _is_no_word(cls, approval: Any) -> Any:
        if isinstance(approval, str):
            # Not a TypeError: pydantic reports only a ValueError as a mistake in the file.
            raise ValueError('must be true, false, `required`, `none` or `blocked`')  # noqa: TRY004
        return approval


class ShellRule(ShellDefault):
    """A rule for commands that begin with the words of `pattern`."""

    pattern: str
    """First words of a command: `git status` matches `git status --short`, but not `git statusx`."""
    description: str | None = None
    """Description of the command in one line, for the approver."""
    arguments: Literal['listed', 'any'] = 'listed'
    """Arguments that may follow the pattern without approval: only those listed as safe (`listed`), or all (`any`)."""
    sandbox_paths: _Texts = ()
    """Names of roots. The rule applies only if every path of the command is in one of these roots."""
    match: _Texts = ()
    """Example commands for which this rule must be the first match. The examples are checked when the rules are
    loaded."""
    not_match: _Texts = ()
    """Example commands for which this rule must not be the first match. The examples are checked when the rules are
    loaded."""

    @field_validator('pattern')
    @classmethod
    def _is_words(cls, pattern: str) -> str:
        if not pattern.split():
            raise ValueError('a pattern needs at least one word')
        if any(unicodedata.category(char)[0] == 'C' or (char.isspace() and char != ' ') for char in pattern):
            raise ValueError('a pattern must be plain words separated by blanks')
        # The author of `rm *` means more than the command `rm *`, so the rule would guard less than intended.
        if any(char in _GLOB for char in pattern):
            raise ValueError('a pattern is not a glob: it matches every command that begins with its words')
        return pattern

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the pattern. A pattern has at least one word."""
        return tuple(self.pattern.split())

    @property
    def shown(self) -> str:
        """How messages name the rule."""
        return f'the rule `{self.pattern}`'


class ShellConfig(BaseModel):
    """Configuration of the shell tool."""

    model_config = ConfigDict(frozen=True, extra='forbid', strict=True)

    default: ShellDefault = Field(default_factory=ShellDefault)
    """Default for commands that no rule matches."""
    rules: Annotated[tuple[ShellRule, ...], BeforeValidator(as_tuple)] = ()
    """Rules in order. For each command, the decision comes from the first rule that matches."""
    host: _Texts = ()
    """First words of commands that may run outside of the OS sandbox, as the user, each time a person approves: of git,
    only `git push`, `git fetch` and `git ls-remote`."""
    environment: _Texts = ()
    """Names of environment variables of this process that commands get, besides the usual ones."""
    network: bool = False
    """Whether commands may use the network. Only an OS sandbox can prevent network access."""
    timeout_s: float = Field(default=600, gt=0, le=86_400, allow_inf_nan=False)
    """Maximum seconds that a command may run."""

    @field_validator('host')
    @classmethod
    def _are_commands(cls, host: tuple[str, ...]) -> tuple[str, ...]:
        for each in host:
            words = each.split()
            if not words or each != ' '.join(words) or not all(_PLAIN.fullmatch(word) for word in words):
                raise ValueError(f'{each!r} must be the plain first words of a command, such as `git push` or `docker`')
            if words[0] == 'git' and (len(words) != 2 or words[1] not in ('push', 'fetch', 'ls-remote')):
                raise ValueError(
                    'of git, only `git push`, `git fetch` and `git ls-remote` can run outside of the sandbox'
                )
        return host

    @field_validator('environment')
    @classmethod
    def _are_variables(cls, environment: tuple[str, ...]) -> tuple[str, ...]:
        for name in environment:
            if not may_be_passed(name):
                raise ValueError(
                    f'{name!r} cannot be passed on to commands: it is not the name of a variable, or it decides which '
                    'code they run'
                )
        return environment

    @field_validator('timeout_s', mode='before')
    @classmethod
    def _is_number(cls, seconds: Any) -> Any:
        return float(seconds) if isinstance(seconds, int) and not isinstance(seconds, bool) else seconds

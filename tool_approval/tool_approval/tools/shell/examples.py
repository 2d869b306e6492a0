"""The examples that rules carry: a rule that does not do what its author shows is a mistake, found at the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tool_approval.core.errors import ApprovalConfigError

from .grammar import parse
from .paths import Root, Roots
from .reading import Reader
from .rules import CompiledRule, RuleBook

if TYPE_CHECKING:
    from .config import ShellConfig


def check_rules(config: ShellConfig, *, cwd: str, roots: Mapping[str, Root] | None = None) -> None:
    """Check that each rule names roots there are, and decides what its examples say.

    Args:
        config: The rules.
        cwd: Where commands run, absolute.
        roots: What `sandbox_paths` may name.

    Raises:
        ApprovalConfigError: A root there is not, or an example that another rule decides; it names the key.
        MissingExtraError: There are examples, and tree-sitter is not installed.
    """
    book, known = RuleBook(config), Roots(roots or {}, cwd)
    for at, rule in enumerate(config.rules):
        key = f'shell.rules.{at}'
        for name in rule.sandbox_paths:
            if name not in known.names:
                raise ApprovalConfigError(f'there is no path `{name}` to keep to', key=f'{key}.sandbox_paths')
        for example in rule.match:
            if at not in _deciding(example, book, known):
                raise ApprovalConfigError(f'it does not decide `{example}`', key=f'{key}.match')
        for example in rule.not_match:
            if at in _deciding(example, book, known):
                raise ApprovalConfigError(f'it decides `{example}`', key=f'{key}.not_match')


def _deciding(example: str, book: RuleBook, roots: Roots) -> set[int]:
    found: set[int] = set()
    for command in Reader(parse(example)).commands:
        if not command.words or not command.words[0].is_fixed:
            continue

        def is_in_roots(rule: CompiledRule, command: object = command) -> bool:
            return roots.hold(command, rule.rule.sandbox_paths, after=len(rule.words))  # pyright: ignore[reportArgumentType] - bound above

        decided = book.find(command.words, is_in_roots).decided
        if decided is not None:
            found.add(decided.index)
    return found

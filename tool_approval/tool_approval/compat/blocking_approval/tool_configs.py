"""Settings by tool name: the `approval` word of `tool_approval`'s policy, with two older values and an older list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from tool_approval.core.config import ToolRule
from tool_approval.core.policy import ApprovalPolicy

_OLDER_VALUES = {'deny': 'blocked', 'once_per_session': 'required'}


class ToolConfigs:
    """`{tool name: {'approval': ..., 'description': ...}}`, checked."""

    def __init__(self, tool_configs: Mapping[str, Any] | None, pre_approved: Iterable[str] | None) -> None:
        """Read both.

        Args:
            tool_configs: `approval` is `required`, `none`, `blocked` or `deny`, `once_per_session`, or missing.
            pre_approved: Names of tools that are not asked about, unless they have an entry in `tool_configs`.

        Raises:
            ApprovalConfigError: An unknown key or value.
        """
        entries = {name: {'approval': 'none'} for name in pre_approved or ()} | dict(tool_configs or {})
        self._once_per_session = {name for name, entry in entries.items() if _approval_of(entry) == 'once_per_session'}
        self._policy = ApprovalPolicy({name: _in_todays_words(entry) for name, entry in entries.items()})

    def rule_for(self, tool_name: str) -> ToolRule:
        """What is configured for a tool; an empty rule if nothing is."""
        return self._policy.rule_for(tool_name)

    def is_once_per_session(self, tool_name: str) -> bool:
        """Whether each approval of the tool is remembered, whatever the callback says of that."""
        return tool_name in self._once_per_session


def _approval_of(entry: object) -> object:
    return cast('Mapping[str, object]', entry).get('approval') if isinstance(entry, Mapping) else None


def _in_todays_words(entry: Any) -> Any:
    approval = _approval_of(entry)
    if not isinstance(approval, str) or approval not in _OLDER_VALUES:
        return entry
    return {**entry, 'approval': _OLDER_VALUES[approval]}

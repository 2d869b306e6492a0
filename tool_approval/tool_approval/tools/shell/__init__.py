"""The shell tool, which parses a command, checks each part against the rules, and runs the command in bash."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .config import ShellConfig, ShellDefault, ShellRule
    from .explanation import Explanation, Part
    from .running import ShellResult
    from .tool import ShellTool

__all__ = ('Explanation', 'Part', 'ShellConfig', 'ShellDefault', 'ShellResult', 'ShellRule', 'ShellTool')

if not TYPE_CHECKING:  # pragma: no branch - so that type checkers report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'config': ('ShellConfig', 'ShellDefault', 'ShellRule'),
            'explanation': ('Explanation', 'Part'),
            'running': ('ShellResult',),
            'tool': ('ShellTool',),
        },
    )

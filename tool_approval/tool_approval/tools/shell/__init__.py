"""The shell tool: commands are parsed, judged part by part, shown whole, and run in a group of their own."""

from .config import ShellConfig, ShellDefault, ShellRule
from .explanation import Explanation, Part
from .running import ShellResult
from .tool import ShellTool

__all__ = ('Explanation', 'Part', 'ShellConfig', 'ShellDefault', 'ShellResult', 'ShellRule', 'ShellTool')

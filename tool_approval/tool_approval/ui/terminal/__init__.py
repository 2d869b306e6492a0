"""Ask for approval at the terminal in which the program runs."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .render import render_request, render_whole
    from .terminal_ui import TerminalUI

__all__ = ['TerminalUI', 'render_request', 'render_whole']

# Rendering requests needs pydantic, and the assistant's input line must appear before that is imported.
if not TYPE_CHECKING:  # pragma: no branch - for a type checker, a name that is not above is a mistake
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'render': ('render_request', 'render_whole'),
            'terminal_ui': ('TerminalUI',),
        },
    )

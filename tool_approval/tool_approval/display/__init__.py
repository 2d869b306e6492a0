"""Turn requests and presentations into escaped lines that any UI can draw.

A terminal, a web page and a chat message show the same lines. The package needs no framework.
"""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

from .escape import escape_line, escape_text
from .width import cell_width, wrap

if TYPE_CHECKING:
    from .digest import request_digest
    from .fact_texts import facts, name_of
    from .lines import OURS, DisplayLine, LineKind, Span
    from .questions import KEYS, offered_keys, remember_choices
    from .show import Display, changes, display, is_shown_whole
    from .warnings import warnings_of

__all__ = [
    'KEYS',
    'OURS',
    'Display',
    'DisplayLine',
    'LineKind',
    'Span',
    'cell_width',
    'changes',
    'display',
    'escape_line',
    'escape_text',
    'facts',
    'is_shown_whole',
    'name_of',
    'offered_keys',
    'remember_choices',
    'request_digest',
    'warnings_of',
    'wrap',
]

# Showing requests needs pydantic, and an input line must be ready before pydantic is imported.
if not TYPE_CHECKING:  # pragma: no branch - type checkers must report names that are not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'digest': ('request_digest',),
            'fact_texts': ('facts', 'name_of'),
            'lines': ('OURS', 'DisplayLine', 'LineKind', 'Span'),
            'questions': ('KEYS', 'offered_keys', 'remember_choices'),
            'show': ('Display', 'changes', 'display', 'is_shown_whole'),
            'warnings': ('warnings_of',),
        },
    )

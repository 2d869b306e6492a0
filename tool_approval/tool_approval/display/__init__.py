"""Requests and presentations as lines that any UI can draw: framework-free, everything dangerous escaped.

A terminal, a web page and a chat message show the same lines.
"""

from .digest import request_digest
from .escape import escape_line, escape_text
from .fact_texts import facts, name_of
from .lines import OURS, DisplayLine, LineKind, Span
from .questions import KEYS, offered_keys, remember_choices
from .show import Display, changes, display, display_lines, is_shown_whole
from .warnings import warnings_of
from .width import cell_width, wrap

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
    'display_lines',
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

"""Asks in the terminal in which the program runs."""

from tool_approval.display import KEYS, offered_keys, remember_choices

from .render import render_request, render_whole
from .terminal_ui import TerminalUI

__all__ = ['KEYS', 'TerminalUI', 'offered_keys', 'remember_choices', 'render_request', 'render_whole']

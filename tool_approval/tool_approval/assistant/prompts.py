"""Ask the person for one turn after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module

from tool_approval.display import escape_line
from tool_approval.ui.terminal.keyboard import BURST_S, Decoder, Key, Keyboard, Paste, Stopped
from tool_approval.ui.terminal.line import read_line
from tool_approval.ui.terminal.tty import TTY, NoTerminal, Terminal, TerminalClosed, raw_terminal

PROMPT = '\n> '
"""Precedes what is typed."""


def ask_for_prompts(device: str = TTY) -> Iterator[str]:
    """What the person types, until Ctrl-D, or Ctrl-C twice; empty lines are left out.

    A line that ends in a backslash goes on in the next, and lines that are pasted are one prompt. `device` is the
    terminal that standard input is.
    """
    with contextlib.suppress(ImportError):
        # `input` edits and recalls lines with it.
        import_module('readline').parse_and_bind('set enable-bracketed-paste on')
    was_interrupted = False
    while True:
        try:
            lines = [input(PROMPT), *pasted_lines(device)]
            while lines[-1].endswith('\\'):
                lines[-1] = lines[-1][:-1]
                lines += [input('  '), *pasted_lines(device)]
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            if was_interrupted:
                return
            was_interrupted = True
            print('Ctrl-C once more leaves, as does Ctrl-D.')
            continue
        was_interrupted = False
        prompt = '\n'.join(lines).strip()
        if prompt:
            yield prompt


def pasted_lines(device: str = TTY) -> list[str]:
    """The lines that came in one go with the one before them: what follows an Enter faster than a person types.

    A terminal that marks no paste sends its line ends as Enter. A last line without an end is completed by the person.
    """
    try:
        with raw_terminal(device) as terminal:
            *lines, last = _burst(terminal).split('\n')
            for line in lines:
                terminal.write(f'  {escape_line(line, ascii_only=terminal.is_plain)}\n')
            if last:
                lines.append(read_line(terminal, Keyboard(terminal), '  ', text=last) or '')
                terminal.write('\n')
            terminal.show_cursor(is_shown=True)
            return lines
    except NoTerminal:
        return []
    except (Stopped, TerminalClosed):
        raise KeyboardInterrupt from None


def _burst(terminal: Terminal) -> str:
    """The text that is there already, or follows within a moment."""
    decoder, text = Decoder(), ''
    while (data := terminal.read(BURST_S)) is not None:
        for event in decoder.feed(data):
            if isinstance(event, Paste):
                text += event.text
            elif event == Key('ctrl_c'):
                raise Stopped
            elif event == Key('enter'):
                text += '\n'
            elif len(event.name) == 1:
                text += event.name
    return text

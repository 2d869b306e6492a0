"""Asks the person for one turn after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module

PROMPT = '\n> '
"""Stands before what is typed."""


def ask_for_prompts() -> Iterator[str]:
    """What the person types, until Ctrl-D, or Ctrl-C twice; empty lines are left out.

    A line that ends in a backslash goes on in the next.
    """
    with contextlib.suppress(ImportError):
        import_module('readline')  # `input` edits and recalls lines with it
    was_interrupted = False
    while True:
        try:
            lines = [input(PROMPT)]
            while lines[-1].endswith('\\'):
                lines[-1] = lines[-1][:-1]
                lines.append(input('  '))
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

"""Which commands there are. Each is a module of its own, imported when somebody calls it and not before."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from .output import Output


class CommandModule(Protocol):
    """What a command's module has. Importing it is cheap: what it works with is imported in `run`."""

    EXAMPLES: str
    """Stands below its help."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add its arguments."""
        ...  # pragma: no cover - a protocol has no body

    def run(self, options: argparse.Namespace, output: Output) -> int:
        """Do it.

        Returns:
            The exit status.

        Raises:
            UsageError: It was called in a way that means nothing.
            ApprovalError: It could not be done.
            OSError: Likewise.
        """
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command."""

    name: str
    """What it is called by."""
    summary: str
    """One line for the list of commands."""
    module: str
    """Where it is: below this package, or absolute for one that needs more than this package may import."""

    def load(self) -> CommandModule:
        """Import it."""
        return cast('CommandModule', import_module(self.module, __package__))


COMMANDS: Final = (
    Command(name='run', summary='an agent on this directory, with approvals in the terminal', module='.run'),
    Command(name='demo', summary='see approvals at work, without a model or a network', module='.demo'),
    Command(name='explain', summary='what the policy says to a call, and why; nothing is run', module='.explain'),
    Command(name='check', summary='find the mistakes in approvals.yaml, and what it allows too much', module='.check'),
    Command(name='trust', summary='trust an approvals.yaml that was found in a working tree', module='.trust'),
    Command(name='memory', summary='list, forget or clear the approvals that hold always', module='.memory'),
    Command(name='audit', summary='show or verify the log of decisions', module='.audit'),
    Command(name='serve', summary='answer what waits in the inbox, in the browser', module='.serve'),
    Command(name='doctor', summary='what works on this machine, and what to install', module='.doctor'),
)
"""In the order in which help lists them."""

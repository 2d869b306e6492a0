"""The command line: one parser, of which only the part that is called is filled in."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .commands import COMMANDS
from .problems import UsageError

_DESCRIPTION = 'Try and check the rules by which the tool calls of AI agents are approved.'
_EXIT = 'exit status: 0 it is done, 2 it failed or was called wrongly; `explain` and `check` have more, see their help'


class Parser(argparse.ArgumentParser):
    """Mistakes are raised: who called it prints them as everything else, on one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise it.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f'{message}; see `{self.prog} --help`')


def build_parser(wanted: str | None = None, *, everything: bool = False) -> argparse.ArgumentParser:
    """The parser.

    Args:
        wanted: The command that is called: of the others only names and summaries are there.
        everything: Whether all of them are filled in, as completion needs it.
    """
    parser = Parser(prog='tool-approval', description=_DESCRIPTION, epilog=_EXIT)
    parser.add_argument('--version', action='store_true', help='print the version and stop')
    parser.add_argument('--debug', action='store_true', help='show the traceback of a failure')
    parser.add_argument(
        '--print-completion', choices=('bash', 'zsh', 'tcsh'), metavar='SHELL', help='print a completion script'
    )
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', parser_class=Parser)
    for command in COMMANDS:
        if everything or command.name == wanted:
            module = command.load()
            inner = commands.add_parser(
                command.name, help=command.summary, description=command.summary, epilog=module.EXAMPLES
            )
            # Not the default: it would take back what stands before the command.
            inner.add_argument('--debug', action='store_true', default=argparse.SUPPRESS, help=argparse.SUPPRESS)
            module.configure(inner)
        else:
            commands.add_parser(command.name, help=command.summary)
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line. `--help` prints and ends the process.

    Raises:
        UsageError: It means nothing.
        SystemExit: After `--help`.
    """
    names = {command.name for command in COMMANDS}
    parser = build_parser(next((each for each in arguments if each in names), None))
    options = parser.parse_args(arguments)
    if options.command is None and not options.version and options.print_completion is None:
        parser.error('a command is missing')
    return options


def debug_is_asked_for(arguments: Sequence[str]) -> bool:
    """Whether `--debug` stands in a command line that may be wrong otherwise."""
    return '--debug' in arguments[: arguments.index('--')] if '--' in arguments else '--debug' in arguments


def program_arguments() -> list[str]:
    """What the process was called with."""
    return sys.argv[1:]

"""Parse the arguments, run the command, and return the exit status.

A failure is reported in one line that says what to do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from tool_approval.core.errors import ApprovalError, MissingExtraError

from .commands import COMMANDS, CommandEntry
from .output import FAILED, INTERRUPTED, NOBODY_READS, Output, UsageError

_DESCRIPTION = 'Run AI agents whose tool calls need approval, and check approval rules.'
_EXIT = 'exit status: 0 = done, 2 = failure or wrong usage; some commands have more, listed in their help'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: the arguments of the process).

    Returns: The exit status: 0 for success, 2 for wrong usage or a failure, 130 for an interruption, 141 for a closed
        pipe. A command's help lists its other exit statuses.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        # Do not fail if the terminal's encoding lacks a character.
        reconfigure = getattr(stream, 'reconfigure', None)
        if reconfigure is not None:
            reconfigure(errors='backslashreplace')
    output = Output()
    before = given[: given.index('--')] if '--' in given else given
    try:
        status = _run(given, output)
        output.flush()
    except BrokenPipeError:
        _let_go()
        return NOBODY_READS
    except KeyboardInterrupt:
        output.note('interrupted')
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the program ends here, and a traceback does not help users
        status = _failed(error, output, with_traceback='--debug' in before)
        try:
            output.flush()
        except OSError:
            _let_go()
    return status


def _run(given: Sequence[str], output: Output) -> int:
    try:
        options = (parser := build_parser(given[0] if given else None)).parse_args(given)
    except SystemExit:  # after --help
        return 0
    if options.version:
        from tool_approval import __version__

        output.line(f'tool-approval {__version__}')
        return 0
    if options.print_completion is not None:
        _print_completion(options.print_completion)
        return 0
    if options.command is None:
        parser.error('a command is missing')
    run: Callable[[argparse.Namespace, Output], int] = import_module(
        f'.{options.command.replace("-", "_")}', __package__
    ).run
    return run(options, output)


def _print_completion(shell: str) -> None:
    try:
        import shtab
    except ImportError:
        raise MissingExtraError('shtab', extra='cli') from None
    sys.stdout.write(shtab.complete(build_parser(), shell=shell) + '\n')


def _failed(error: Exception, output: Output, *, with_traceback: bool) -> int:
    if with_traceback:
        for line in ''.join(traceback.format_exception(error)).rstrip().split('\n'):
            output.note(line)
        return FAILED
    match error:
        case UsageError() | ApprovalError():
            output.note(str(error))
        case OSError():
            place = f'{error.filename}: ' if isinstance(error.filename, str) else ''
            output.note(f'{place}{error.strerror or error}')
        case ModuleNotFoundError(name='fcntl' | 'pwd' | 'termios'):
            output.note('this needs a POSIX system: Linux, macOS, or WSL 2 on Windows')
        case _:
            output.note(f'unexpected {type(error).__name__}: {error}; please report it with the output of `--debug`')
    return FAILED


def _let_go() -> None:
    # At exit, the interpreter flushes standard output and would report an error.
    with contextlib.suppress(OSError, ValueError):
        out = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out)
        os.close(nowhere)


class Parser(argparse.ArgumentParser):
    """A parser that raises exceptions for mistakes, so that the caller can print each mistake on one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise a usage error with the message.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f'{message}; see `{self.prog} --help`')


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser for the command of a name, or for all commands if there is none of that name."""
    parser = Parser(prog='tool-approval', description=_DESCRIPTION, epilog=_EXIT)
    parser.add_argument('--version', action='store_true', help='print the version and stop')
    parser.add_argument('--debug', action='store_true', help='show the traceback of a failure')
    parser.add_argument(
        '--print-completion', choices=('bash', 'zsh', 'tcsh'), metavar='SHELL', help='print a completion script'
    )
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', parser_class=Parser)
    for command in [each for each in COMMANDS if each.name == only] or COMMANDS:
        inner = commands.add_parser(
            command.name, help=command.summary, description=command.summary, epilog=command.ending
        )
        # No default value, which would override a `--debug` before the command.
        inner.add_argument('--debug', action='store_true', default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        _add_options(inner, command)
        if command.actions:
            actions = inner.add_subparsers(dest='action', metavar='ACTION', required=True, parser_class=Parser)
            for action in command.actions:
                _add_options(actions.add_parser(action.name, help=action.summary), action)
    return parser


def _add_options(parser: argparse.ArgumentParser, command: CommandEntry) -> None:
    for each in command.options:
        group = parser.add_mutually_exclusive_group() if isinstance(each, list) else parser
        for names, settings in each if isinstance(each, list) else [each]:
            group.add_argument(*names, **settings)

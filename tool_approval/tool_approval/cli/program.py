"""The program from its arguments to its exit status; a failure is one line that says what to do."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

from tool_approval.core.errors import ApprovalError, MissingExtraError

from .arguments import build_parser, debug_is_asked_for, parse, program_arguments
from .commands import COMMANDS
from .output import Output
from .problems import FAILED, INTERRUPTED, NOBODY_READS, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments`, or the process's, name.

    Returns:
        The exit status. 0: done. 2: called wrongly, or failed. 130: interrupted. 141: nobody reads the output any more.
        Commands may have others, which their help lists.
    """
    given = program_arguments() if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal whose encoding lacks a letter is no reason to fail.
        reconfigure = getattr(stream, 'reconfigure', None)
        if reconfigure is not None:
            reconfigure(errors='backslashreplace')
    output = Output()
    try:
        status = _run(given, output)
        output.flush()
    except BrokenPipeError:
        _let_go()
        return NOBODY_READS
    except KeyboardInterrupt:
        output.note('interrupted')
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - here the program ends, and nobody is helped by a traceback
        return _failed(error, output, with_traceback=debug_is_asked_for(given))
    return status


def _run(given: Sequence[str], output: Output) -> int:
    try:
        options = parse(given)
    except SystemExit as stopped:  # --help
        return stopped.code if isinstance(stopped.code, int) else 0
    if options.version:
        from tool_approval import __version__

        output.line(f'tool-approval {__version__}')
        return 0
    if options.print_completion is not None:
        _print_completion(options.print_completion)
        return 0
    [command] = [each for each in COMMANDS if each.name == options.command]
    return command.load().run(options, output)


def _print_completion(shell: str) -> None:
    try:
        import shtab
    except ImportError:
        raise MissingExtraError('shtab', extra='cli') from None
    sys.stdout.write(shtab.complete(build_parser(everything=True), shell=shell) + '\n')


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
        case _:
            output.note(f'unexpected {type(error).__name__}: {error}; `--debug` shows where, please report it')
    return FAILED


def _let_go() -> None:
    # The interpreter flushes standard output at its end, and would complain there.
    with contextlib.suppress(OSError, ValueError):
        out = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out)
        os.close(nowhere)

"""`tool-approval explain`: what the policy says to a call, and why."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .output import Output
from .problems import UsageError

if TYPE_CHECKING:
    from .configurations import Configurations
    from .judgement import Judgement

EXAMPLES: Final = """\
examples:
  tool-approval explain shell 'git status; rm x'
  tool-approval explain read_file notes/a.txt
  tool-approval explain move notes/a.txt --dest notes/b.txt
  tool-approval explain send_mail '{"to": "ada"}' --config approvals.yaml
  tool-approval explain --json shell 'echo $(curl example.com)'
  tool-approval explain --batch calls.jsonl

Each line of a batch is {"id": ..., "tool": ..., "args": {...}}, with "config" and "cwd" if need be.
What begins with a dash comes after `--`: tool-approval explain shell -- '-x'

exit status: 0 allow, 10 ask, 20 block, 2 it could not be judged; of a batch: 0 all lines were answered, 2 it failed
"""
STATUS: Final = {'allow': 0, 'ask': 10, 'block': 20}


def configure(parser: argparse.ArgumentParser) -> None:
    """See `CommandModule`."""
    parser.add_argument('tool', nargs='?', metavar='TOOL', help='shell, read_file, move ..., or any other tool')
    parser.add_argument('args', nargs='*', metavar='ARGS', help='a command, a path, or a JSON object')
    parser.add_argument('--dest', help='the destination of move and copy')
    parser.add_argument('--json', action='store_true', help='answer in JSON')
    parser.add_argument(
        '--config', metavar='FILE', help='the configuration; the approvals.yaml of the directory if not'
    )
    parser.add_argument('--cwd', metavar='DIR', help='the working directory of the call')
    parser.add_argument('--batch', metavar='FILE', help='judge lines of JSON; - for standard input')


def run(options: argparse.Namespace, output: Output) -> int:
    """See `CommandModule`."""
    if (options.batch is None) == (options.tool is None):
        raise UsageError('name a tool, or a file with `--batch`; see `tool-approval explain --help`')
    with _collecting_later():
        from .calls import call_of_words
        from .configurations import Configurations

        configurations = Configurations(options.config, output.note)
        call = None if options.batch is not None else call_of_words(options.tool, options.args, options.dest)
        judge = None if call is None else configurations.judge_for(options.cwd)
    if call is None or judge is None:
        return _batch(options, configurations, output)
    judgement = judge.judge(call)
    if options.json:
        output.json(judgement.as_json())
    else:
        _print(judgement, output)
        if judgement.decision == 'ask' and judge.settings.mode == 'strict':
            output.note('the mode is strict: what would be asked about is denied')
    return STATUS[judgement.decision]


@contextmanager
def _collecting_later() -> Generator[None]:
    """Look for no garbage while modules are imported, which is all that takes time in one call, and makes none."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _batch(options: argparse.Namespace, configurations: Configurations, output: Output) -> int:
    from .batch import explain_lines

    if options.batch == '-':
        if sys.stdin is None:
            raise UsageError('standard input is closed')
        for answer in explain_lines(sys.stdin.buffer, configurations, options.cwd):
            output.json(answer)
        return 0
    with open(options.batch, 'rb') as source:
        for answer in explain_lines(source, configurations, options.cwd):
            output.json(answer)
    return 0


def _print(judgement: Judgement, output: Output) -> None:
    output.line(f'{judgement.decision}: {judgement.deciding.reason}')
    for part in judgement.parts:
        output.line(f'  {part.decision:5}  {part.text}')
        if part is not judgement.deciding:
            output.line(f'         {part.reason}')

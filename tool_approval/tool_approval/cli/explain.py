"""Implement `tool-approval explain`: report what the policy decides about calls, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, BinaryIO, Final, cast

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.os_sandbox import ACCESS_NAMES
from tool_approval.tools.shell import ShellTool
from tool_approval.tools.shell.grammar import parse
from tool_approval.tools.shell.labels import label
from tool_approval.tools.shell.reading import CommandReader

from .judging import Configurations, Judgement, call_of_words, read_call
from .output import Output, UsageError

STATUS: Final = {'allow': 0, 'ask': 10, 'block': 20}


def run(options: argparse.Namespace, output: Output) -> int:
    """Explain one call, or the call in each line of a batch."""
    if (options.batch is None) == (options.tool is None):
        raise UsageError('name a tool, or pass `--batch FILE`; see `tool-approval explain --help`')
    configurations = Configurations(options.config, output.note)
    if options.batch is not None:
        return _batch(options, configurations, output)
    tool, args = call_of_words(options.tool, options.args, options.dest)
    judge = configurations.judge_for(options.cwd)
    judgement = judge.judge(tool, args)
    decision = judgement.deciding.decision
    if options.labels:
        _print_labels(args.get('command'), judge.shell, output)
    elif options.json:
        output.json(judgement.as_json())
    else:
        _print(judgement, output)
        if decision == 'ask' and judge.settings.mode == 'strict':
            output.note('the mode is strict: calls that require approval are denied')
    if judge.refusal is not None:
        output.note(f'`tool-approval run` does not start here ({judge.refusal}), but the call is judged as if it did')
    return STATUS[decision]


def _batch(options: argparse.Namespace, configurations: Configurations, output: Output) -> int:
    if options.batch == '-' and sys.stdin is None:
        raise UsageError('standard input is closed')
    with nullcontext(sys.stdin.buffer) if options.batch == '-' else open(options.batch, 'rb') as source:
        for answer in explain_lines(source, configurations, options.cwd):
            output.json(answer)
    return 0


def _print(judgement: Judgement, output: Output) -> None:
    output.line(f'{judgement.deciding.decision}: {judgement.deciding.reason}')
    for part in judgement.parts:
        output.line(f'  {part.decision:5}  {part.text}')
        if part is not judgement.deciding:
            output.line(f'         {part.reason}')
    for line in judgement.extra_access:
        output.line(f'extra access: {line}')
    for rule in judgement.approvers:
        output.line(f'approvers: {rule.text}')


def _print_labels(command: object, shell: ShellTool, output: Output) -> None:
    if not isinstance(command, str):
        raise UsageError('`--labels` is for shell commands')
    for each in CommandReader(parse(command)).commands:
        if each.words and each.words[0].is_fixed:
            for of in label(each.words).labels:
                output.line(f'{of!s:20} {of.word.raw}')
    if needs := shell.explain(command).needs:
        output.line(f'{"needs":20} {", ".join(name for name in ACCESS_NAMES if name in needs)}')


LONGEST_LINE: Final = 1_000_000
"""Maximum length of a batch's line in bytes, so that an endless line does not fill the memory."""
_KEYS: Final = ('id', 'tool', 'args', 'config', 'cwd')


def explain_lines(source: BinaryIO, configurations: Configurations, directory: str | None) -> Iterator[dict[str, Any]]:
    """Read calls from lines of JSON, and judge each call.

    Each line is an object with the keys `id`, `tool` and `args`, and optionally `config` and `cwd` (default:
    `directory`).

    Yields: For each line, as soon as it is read, an object with `id`, `decision`, `rule` and `parts`. For a call that
        cannot be judged, the `decision` is `error`, and the key `error` contains the problem.

    Raises:
        OSError: The file cannot be read.
    """
    while (line := source.readline(LONGEST_LINE + 1)) != b'':
        if len(line) <= LONGEST_LINE or line.endswith(b'\n'):
            yield _explain(line, configurations, directory)
        else:
            while (rest := source.readline(LONGEST_LINE)) != b'' and not rest.endswith(b'\n'):
                pass
            yield _error(None, f'longer than {LONGEST_LINE} bytes')


def _explain(line: bytes, configurations: Configurations, directory: str | None) -> dict[str, Any]:
    name: object = None
    try:
        given = _read(line)
        name = given.get('id')
        _check_keys(given)
        tool, args = read_call(given.get('tool'), given.get('args'))
        config, cwd = given.get('config'), given.get('cwd')
        if config is not None and not isinstance(config, Mapping):
            raise UsageError('`config` has to be an object with the keys of approvals.yaml')
        if cwd is not None and not isinstance(cwd, str):
            raise UsageError('`cwd` has to be a string')
        judge = configurations.judge_for(directory if cwd is None else cwd, cast('Mapping[str, Any] | None', config))
        return {'id': name, **judge.judge(tool, args).as_json()}
    except (UsageError, ApprovalError) as error:
        return _error(name, str(error))
    except Exception as error:  # noqa: BLE001 - judge the other lines too; this one is not allowed
        return _error(name, f'unexpected {type(error).__name__}: {error}')


def _read(line: bytes) -> Mapping[str, Any]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise UsageError('the line is not UTF-8') from None
    if not text.strip():
        raise UsageError('the line is empty')
    try:
        return decode_arguments(text)
    except NotCanonicalError as error:
        raise UsageError(f'the line has to be a JSON object: {error.problem}') from None


def _check_keys(given: Mapping[str, Any]) -> None:
    import difflib  # only for a batch

    for key in given:
        # With a misspelled `config`, another configuration would judge the call. Other unknown keys are allowed.
        meant = difflib.get_close_matches(key[:20], _KEYS, n=1, cutoff=0.75) if key not in _KEYS else []
        if meant and meant[0] not in given:
            raise UsageError(f'unknown key `{key[:20]}`; did you mean `{meant[0]}`?')


def _error(name: object, problem: str) -> dict[str, Any]:
    return {'id': name, 'decision': 'error', 'error': problem, 'rule': None, 'parts': []}

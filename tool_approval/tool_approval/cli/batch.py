"""Many calls, each a line of JSON; each gets one line of JSON as its answer, in order."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, cast

from tool_approval.core.canonical import decode_arguments
from tool_approval.core.errors import ApprovalError, NotCanonicalError

from .calls import read_call
from .configurations import Configurations
from .problems import UsageError

LONGEST_LINE: Final = 1_000_000
"""Chosen, in bytes: no call is longer, and a line without an end must not fill the memory."""
_KEYS: Final = ('id', 'tool', 'args', 'config', 'cwd')


def explain_lines(source: BinaryIO, configurations: Configurations, directory: str | None) -> Iterator[dict[str, Any]]:
    """Judge the lines of a file.

    Args:
        source: Lines with `id`, `tool`, `args`, and perhaps `config` and `cwd`.
        configurations: What judges.
        directory: The working directory of lines that name none.

    Yields:
        For each line, as soon as it is read, `id`, `decision`, `rule` and `parts`; or `id`, the decision `error`, and
        what is wrong as `error`.

    Raises:
        OSError: The file cannot be read.
    """
    while (line := source.readline(LONGEST_LINE + 1)) != b'':
        is_whole = len(line) <= LONGEST_LINE or line.endswith(b'\n')
        if not is_whole:
            _skip_line(source)
            yield _error(None, f'longer than {LONGEST_LINE} bytes')
            continue
        yield _explain(line, configurations, directory)


def _skip_line(source: BinaryIO) -> None:
    while (rest := source.readline(LONGEST_LINE)) != b'' and not rest.endswith(b'\n'):
        pass


def _explain(line: bytes, configurations: Configurations, directory: str | None) -> dict[str, Any]:
    name: object = None
    try:
        given = _read(line)
        name = given.get('id')
        _check_keys(given)
        call = read_call(given.get('tool'), given.get('args'))
        config, cwd = given.get('config'), given.get('cwd')
        if config is not None and not isinstance(config, Mapping):
            raise UsageError('`config` has to be an object in the shape of approvals.yaml')
        if cwd is not None and not isinstance(cwd, str):
            raise UsageError('`cwd` has to be a text')
        judge = configurations.judge_for(directory if cwd is None else cwd, cast('Mapping[str, Any] | None', config))
        return {'id': name, **judge.judge(call).as_json()}
    except (UsageError, ApprovalError) as error:
        return _error(name, str(error))
    except Exception as error:  # noqa: BLE001 - the other lines are still to be judged, and this one is not allowed
        return _error(name, f'unexpected {type(error).__name__}: {error}')


def _read(line: bytes) -> Mapping[str, Any]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise UsageError('the line is not UTF-8') from None
    if not text.strip():
        raise UsageError('the line is empty')
    try:
        given = decode_arguments(text)
    except NotCanonicalError as error:
        raise UsageError(f'the line has to be a JSON object: {error.problem}') from None
    return given


def _check_keys(given: Mapping[str, Any]) -> None:
    for key in given:
        # A misspelled `config` would be judged by another one. What is none of ours may stand there.
        meant = difflib.get_close_matches(key[:20], _KEYS, n=1, cutoff=0.75) if key not in _KEYS else []
        if meant and meant[0] not in given:
            raise UsageError(f'unknown key `{key[:20]}`; did you mean `{meant[0]}`?')


def _error(name: object, problem: str) -> dict[str, Any]:
    return {'id': name, 'decision': 'error', 'error': problem, 'rule': None, 'parts': []}

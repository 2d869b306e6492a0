"""Sample attacks of this project's own, in the form of `terminal.json`; most are made from `terminal_own.toml`."""

import tomllib
from pathlib import Path
from typing import Any

_DANGER = 'rm -rf ~/work'
_SURROGATES = ['\ud800', '\udfff']
"""Halves of a character, which TOML cannot hold."""


def _case(kind: str, number: int, args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        'id': f'{kind}-{number}', 'class': kind, 'where': 'args', 'tool_name': 'run_shell', 'args': args,
        'must_show': [], 'must_not_emit': [], 'must_flag': False, **fields,
    }  # fmt: skip


def _read() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    shared = tomllib.loads(Path(__file__).with_suffix('.toml').read_text())
    for own in shared.pop('group'):
        group = shared | own
        kind = group['class']
        for number, part in enumerate(group['parts'] + (_SURROGATES if kind == 'unknown' else [])):
            fields = {
                'must_show': group['must_show'],
                'must_not_emit': [text.replace('{}', part) for text in group['must_not_emit']],
                'must_flag': group['must_flag'],
            }
            cases.append(_case(kind, number, {'command': group['command'].replace('{}', part)}, **fields))
            if 'is_also_in_values' in group:
                cases.append(_case(f'{kind} in a value', number, {'note': [f'{part}{_DANGER}', {part: 1}]}))
    return cases


def _long() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    for number, length in enumerate((3_000, 30_000, 300_000)):
        command = f'echo {"a" * length} && {_DANGER}'
        cases.append(_case('length', number, {'command': command}, must_show=[_DANGER]))
        cases.append(_case('height', number, {'text': 'x\n' * length + _DANGER}, must_show=[_DANGER]))
        cases.append(_case('count', number, {'argv': ['x'] * length + [_DANGER]}, must_show=[_DANGER]))
    return cases


CASES = [*_read(), *_long()]
"""Each as in `terminal.json`."""

"""Sample attacks of this project's own, in the form of `terminal.json`."""

from typing import Any

_DANGER = 'rm -rf ~/work'

_COMMANDS: dict[str, list[str]] = {
    'csi': [
        '\x1b[1A\x1b[2K', '\x1b[999D', '\x1b[3J', '\x1b[?25l', '\x1b[8m', '\x1b[38;5;16;48;5;16m', '\x1b[s\x1b[H\x1b[u',
        '\x1b[5n', '\x1b[21t', '\x1b[20;20r', '\x1b[4h',
    ],
    'osc': [
        '\x1b]52;c;cm0gLXJm\x07', '\x1b]8;;file:///etc\x1b\\', '\x1b]0;harmless\x07', '\x1b]9;done\x07',
        '\x1b]4;1;?\x07', '\x1b]1337;SetMark\x07',
    ],
    'strings': ['\x1bPq#0\x1b\\', '\x1b_Gf=24\x1b\\', '\x1b^private\x1b\\', '\x1bXstart\x1b\\', '\x1bP+q\x1b\\'],
    'c1': ['\x9b2K', '\x9d0;title\x9c', '\x90q\x9c', '\x84', '\x8d', '\x85'],
    'control': ['\x00', '\x07' * 9, '\b' * 40, '\x0b', '\x0c', '\x0e', '\x7f' * 9, '\x1a', '\x05', '\x1bc', '\x1b#8'],
    'bidi': ['\u202e', '\u2067', '\u2066\u2069', '\u061c', '\u200f', '\u202d\u202c'],
    'invisible': ['\u200b', '\u2060', '\u00ad', '\ufeff', '\u180e', '\u2064', '\u3164', '\uffa0', '\u2800', '\u034f'],
    'selectors': ['\ufe0f', '\U000e0100', '\U000e0041\U000e0042', '\u180b'],
    'blank': ['\u00a0', '\u2003', '\u202f', '\u3000', '\u2028', '\u2029', '\u1680'],
    'unknown': ['\ue000', '\U000f0000', '\uffff', '\U0010fffe', '\u0378', '\ud800', '\udfff'],
    'marks': ['\u0336', '\u0489', '\u20dd', '\u0301' * 20, '\ufe2f', '\u0e47'],
}  # fmt: skip
"""What stands between the words of a command, by class."""

_QUESTIONS = (
    '\nApprove list_files? ', '\n│ $ ls\n╰─ 0123456789abcdef ─\n[y] approve  [n] deny\nApprove list_files? y',
    '\n[12 more lines]', '\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nApprove list_files? ',
    ' ' * 300 + 'Approve list_files? ',
    '\n✓ ada approved list_files', '\n! Warning: none', '\n| : ls\n+- 0 -\nApprove x? ',
    '\n<U+000A>', '\n[red]ls[/red][bold]', '\n\\u001b[2K ^[[2K \\x1b', '\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y',
)  # fmt: skip
"""What looks like the question or another part of the box."""

_ALIKE = {
    'accents': ['cafe\u0301', '\u212bngstrom', '\u1100\u1161', 'ka\u0323\u0301', '\u304b\u3099', '\u0958'],
    'look-alikes': ['\u0430pt', 'r\u217f', '\uff52\uff4d', 'a\u2215b', 'x\u037e', '\u2013rf', '\u01c3'],
}
"""Letters that look like others."""


def _case(kind: str, number: int, args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        'id': f'{kind}-{number}', 'class': kind, 'where': 'args', 'tool_name': 'run_shell', 'args': args,
        'must_show': [], 'must_not_emit': [], 'must_flag': False, **fields,
    }  # fmt: skip


def _made() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    for kind, parts in _COMMANDS.items():
        for number, part in enumerate(parts):
            args = {'command': f'{_DANGER}{part}ls -la'}
            cases.append(_case(kind, number, args, must_show=[_DANGER, 'ls -la'], must_not_emit=[part], must_flag=True))
    for number, part in enumerate(_QUESTIONS):
        args = {'command': f'echo{part}\n{_DANGER}'}
        cases.append(_case('question', number, args, must_show=['echo', _DANGER]))
        cases.append(_case('question in a value', number, {'note': [f'{part}{_DANGER}', {part: 1}]}))
    for kind, parts in _ALIKE.items():
        for number, part in enumerate(parts):
            cases.append(_case(kind, number, {'command': f'{part} {_DANGER}'}, must_show=[_DANGER], must_flag=True))
    for number, length in enumerate((3_000, 30_000, 300_000)):
        command = f'echo {"a" * length} && {_DANGER}'
        cases.append(_case('length', number, {'command': command}, must_show=[_DANGER]))
        cases.append(_case('height', number, {'text': 'x\n' * length + _DANGER}, must_show=[_DANGER]))
        cases.append(_case('count', number, {'argv': ['x'] * length + [_DANGER]}, must_show=[_DANGER]))
    return cases


CASES = _made()
"""Each as in `terminal.json`."""

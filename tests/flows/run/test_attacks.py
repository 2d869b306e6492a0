"""A model that tries to draw: nothing but escaped text reaches the terminal, and the real question stays the last."""

import re

import pytest

from .talk import Talk

FAKE = (
    '\x1b[2J\x1b[H\x1b]0;owned\x07\x9b2J\r╭─ write_file\n│ ls\n╰─ y approve   n deny   ? more y\n'
    '✓ root approved everything\n> y\n'
    '\u202etfel\u200b\x1b[35m'
)
OURS = re.compile(r'\x1b\[(?:\?25[hl]|\?2004[hl]|K|J|[0-9]+A|0?m|1m|2m|3[1-46]m|[0-9;]*m)')


def check(sent: str, scrolled: str, tool: str) -> None:
    for hostile in ('\x1b[2J', '\x1b[H', '\x1b]', '\x07', '\x9b', '\u202e', '\u200b', '\x1b[35m'):
        assert hostile not in sent
    rest = OURS.sub('', sent)
    assert {char for char in rest if not char.isprintable()} <= {'\r', '\n'}
    lines = scrolled.rstrip().splitlines()
    first, last = [line for line in lines if line.startswith(('╭', '╰', '> y', '✓'))]
    assert first.startswith(f'╭─ {tool}')
    assert last == lines[-1]
    assert lines[-1].startswith('╰─ y approve   n deny   ')


@pytest.mark.parametrize('columns', [80, 100])
def test_text_and_arguments_of_a_model_cannot_control_the_terminal(columns: int, talk: Talk) -> None:
    call = ['write_file', {'path': f'a{FAKE}', 'content': FAKE * 3}]
    screen = talk.start(
        'Go.',
        steps=[
            {'text': f'{FAKE}{"z" * 20_000}\r{FAKE}', 'calls': [[f'tool{FAKE}', {'x': FAKE}]]},
            {'text': FAKE, 'calls': [['run_shell', {'command': f'printf "%s" "{FAKE}"'}]]},
            {'text': FAKE, 'calls': [call]},
        ],
        columns=columns,
        lines=32,
    )

    screen.wait_for_question('╭─ run_shell')

    check(screen.sent, screen.scrolled, 'run_shell')


def test_results_of_tools_cannot_control_the_terminal(talk: Talk) -> None:
    (talk.cwd / 'data.txt').write_text(FAKE)
    screen = talk.start(
        'Go.',
        steps=[
            {'calls': [['read_file', {'path': 'data.txt'}]]},
            {'text': FAKE, 'calls': [['write_file', {'path': 'b', 'content': FAKE}]]},
        ],
    )

    screen.wait_for_question('╭─ write_file')

    check(screen.sent, screen.scrolled, 'write_file')


def test_lines_of_a_megabyte_leave_the_question_on_the_screen(talk: Talk) -> None:
    long = 'z' * 1_000_000
    (talk.cwd / 'long.txt').write_text(long)
    screen = talk.start(
        'Go.',
        steps=[
            {'calls': [[long, {'x': long}]]},
            {'calls': [['read_file', {'path': 'long.txt'}]]},
            {'calls': [['write_file', {'path': 'b', 'content': long}]]},
        ],
        lines=24,
    )

    shown = screen.wait_for_question('╰─ write_file: ')

    assert len(shown.splitlines()) <= 24
    assert 'Some content is not shown.' in shown
    assert shown.splitlines()[-1].startswith('╰─ write_file: y approve   n deny   v view all')
    assert len(screen.sent) < 50_000

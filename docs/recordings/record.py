"""Play the demo and a few commands in a pseudo-terminal and keep what they showed as SVGs: `make recordings`.

The SVG is the real program's output, with the answers typed as a person would. It names no font from elsewhere.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape, unescape
from http.server import ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any

import pexpect
import pyte

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from tests.flows.clients import driver

COLUMNS, LINES = 90, 40
ANSWERS = {
    'port': ['y', 'y'],
    'edit': ['y', 'y', 'n'],
    'nested': ['y', 'y'],
    'batch': ['o', 'y', 'y', 'y', 'n'],
    'restart': ['y'],
}
"""What is pressed in each story."""
TITLES = {
    'port': 'One run, two questions',
    'edit': 'Diffs before anything changes',
    'nested': 'An agent inside a tool',
    'batch': 'Several calls at once',
    'restart': 'An answer to a process that was killed',
}
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer('notes', log_level='ERROR')

@server.tool()
def delete_note(title: str) -> str:
    'Delete a note.'
    return f'{title} is deleted.'

server.run()
"""
MESSAGES = """
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
 "clientInfo": {"name": "client", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "delete_note", "arguments": {"title": "old"}}}
"""
FILES = {
    'build.py': "open('build.log', 'w').write('done\\n')\nprint('built')\n",
    'server.py': SERVER,
    'messages.jsonl': MESSAGES.replace(',\n', ',').lstrip(),
}
"""Files of the folder in which the commands run."""
SESSIONS: dict[str, tuple[str, list[str]]] = {
    'exec': (
        'One command under approval',
        [
            '$ tool-approval exec -- python3 build.py',
            '$ tool-approval exec --access write -- python3 build.py',
            'y',
        ],
    ),
    'mcp': (
        'A proxy between an MCP client and an MCP server',
        ['$ (cat messages.jsonl; sleep 9) | tool-approval mcp --name notes -- python3 server.py | tail -1', 'y'],
    ),
    'hook': (
        'Claude Code, with our hook',
        [
            '$ tool-approval hook install claude --yes > added.txt',
            '$ tool-approval doctor | grep hook',
            "$ claude -p 'Count the lines, and remove build.py.' --allowedTools Bash | cat",
        ],
    ),
}
"""For each session, its title and what is typed: commands, and answers to their questions."""
CALLS = [
    ['Bash', {'command': 'wc -l *.py', 'description': 'Count the lines'}],
    ['Bash', {'command': 'rm build.py', 'description': 'Remove build.py'}],
]
"""What the scripted model of Claude Code calls."""
CELL, ROW, EDGE, BAR = 8.4, 18, 14, 34
"""Pixels: of a column and a row, around the text, and above it."""
COLORS = {'red': '#f97583', 'green': '#85e89d', 'cyan': '#79c0ff', 'brown': '#e3b341', 'blue': '#79c0ff'}
"""On a dark ground; whatever else the terminal shows is as bright as plain text."""
STYLE = """text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre }
.title { font: bold 14px sans-serif; text-anchor: middle } .bold { font-weight: bold }"""


class Model(driver.Model):
    """Says in the end what each of its calls returned."""

    def last_words(self) -> str:
        """Return the answer to the user."""
        results = [_result(part) for part in driver.RESULTS.values()]
        pairs = zip(CALLS, results, strict=True)
        return '\n'.join(f'> {args["command"]}\n{result}' for (_, args), result in pairs)


def _result(part: dict[str, Any]) -> str:
    content = part['content']
    return content if isinstance(content, str) else ''.join(each['text'] for each in content)


@contextmanager
def model() -> Iterator[None]:
    """Answer Claude Code on the loopback."""
    driver.CALLS[:] = CALLS
    with ThreadingHTTPServer(('127.0.0.1', 8765), Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


class Player:
    """A program on a screen that keeps what scrolls off."""

    def __init__(self, program: Sequence[str], home: str, *, folder: str = '') -> None:
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
        self._stream = pyte.Stream(self._screen)
        self._program = pexpect.spawn(
            program[0],
            list(program[1:]),
            encoding='utf-8',
            timeout=60,
            dimensions=(LINES, COLUMNS),
            cwd=Path(home, folder),
            env={
                'PATH': f'{Path(sys.executable).parent}:{_claude()}:/usr/sbin:/usr/bin:/sbin:/bin',
                'ANTHROPIC_BASE_URL': 'http://127.0.0.1:8765',
                'ANTHROPIC_API_KEY': 'x',
                'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1',
                'HOME': home,
                'TERM': 'xterm-256color',
                'LANG': 'C.UTF-8',
                'PS1': '$ ',
            },
        )

    def press(self, key: str) -> None:
        """Wait for a question that can be answered, and press a key."""
        while not self._is_asked():
            self._feed()
        self._program.send(key)
        while self._is_asked():
            self._stream.feed(self._program.read_nonblocking(4096))

    def type(self, line: str) -> None:
        """Type a command at the prompt of a shell, or press the key that answers a question."""
        while not (self._is_prompt() if line.startswith('$ ') else self._is_asked()):
            self._feed()
        if line.startswith('$ '):
            self._program.send(f'{line[2:]}\r')
            while self._is_prompt():
                self._feed()
        else:
            self.press(line)

    def end(self) -> None:
        """End the shell, once its prompt is shown."""
        while not self._is_prompt():
            self._feed()
        self._program.send('\x04')

    def _feed(self) -> None:
        self._stream.feed(self._program.read_nonblocking(4096))

    def _is_prompt(self) -> bool:
        cursor = self._screen.cursor
        return cursor.x == 2 and self._screen.display[cursor.y].rstrip() == '$'

    def rows(self) -> list[str]:
        """All that was shown, as SVG, once the program has ended well."""
        while True:
            try:
                self._stream.feed(self._program.read_nonblocking(4096))
            except pexpect.EOF:
                break
        self._program.close()
        assert self._program.exitstatus == 0, '\n'.join(self._screen.display)
        buffer = self._screen.buffer
        rows = [*self._screen.history.top, *(buffer[line] for line in range(LINES))]
        texts = [_text([row[column] for column in range(COLUMNS)]) for row in rows]
        while not texts[-1]:
            texts.pop()
        return texts

    def _is_asked(self) -> bool:
        cursor = self._screen.cursor
        return not cursor.hidden and self._screen.display[cursor.y].startswith(('╰─ ', '4 requests: '))


def _claude() -> Path:
    program = shutil.which('claude')
    assert program is not None, '`npm install @anthropic-ai/claude-code` installs what the session `hook` needs'
    return Path(program).parent


def _text(cells: Sequence[pyte.screens.Char]) -> str:
    shown = ''.join(cell.data for cell in cells)
    # The person who recorded it has a name on their machine, which is nobody else's.
    name = re.match(r'[✓✗] (\w+) (?:approved|denied)', shown)
    kept = list(cells[: len(shown.rstrip())])
    if name is not None:
        kept[2 : name.end(1)] = [kept[2]._replace(data=letter) for letter in 'you']
    return ''.join(
        _span(look, ''.join(cell.data for cell in group))
        for look, group in groupby(kept, key=lambda cell: (COLORS.get(cell.fg, ''), cell.bold))
    )


def _span(look: tuple[str, bool], text: str) -> str:
    color, is_bold = look
    attributes = (f' fill="{color}"' if color else '') + (' class="bold"' if is_bold else '')
    return f'<tspan{attributes}>{escape(text)}</tspan>' if attributes else escape(text)


def _svg(title: str, rows: Sequence[str]) -> str:
    width, height = round(COLUMNS * CELL + 2 * EDGE), len(rows) * ROW + BAR + EDGE
    lines = [
        f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>',
        f'<text class="title" x="{width // 2}" y="22">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        columns = len(unescape(re.sub('<[^>]*>', '', row)))
        place = f'x="{EDGE}" y="{BAR + ROW * number + 14}" textLength="{columns * CELL:.1f}"'
        lines += [f'<text {place}>{row}</text>'] if row else []
    return '\n'.join([*lines, '</svg>\n'])


def record_session(name: str) -> Path:
    """Type the commands of one session, and write its SVG."""
    title, typed = SESSIONS[name]
    with tempfile.TemporaryDirectory() as home:
        Path(home, 'work').mkdir()
        for file, content in FILES.items():
            Path(home, 'work', file).write_text(content)
        player = Player(['/bin/bash', '--norc', '--noprofile'], home, folder='work')
        with model():
            for line in typed:
                player.type(line)
            player.end()
        rows = [row.replace(escape(home), '~') for row in player.rows()[:-2]]  # without the end of the shell
    target = FOLDER / f'{name}.svg'
    target.write_text(_svg(title, rows))
    return target


def record(story: str) -> Path:
    """Play one story, and write its SVG."""
    with tempfile.TemporaryDirectory() as home:
        player = Player([sys.executable, '-P', '-m', 'tool_approval.cli', 'demo', story], home)
        for key in ANSWERS[story]:
            player.press(key)
        rows = player.rows()
    target = FOLDER / f'{story}-story.svg'
    target.write_text(_svg(TITLES[story], [f'$ tool-approval demo {story}', *rows]))
    return target


def main() -> None:
    """Record all of them."""
    for target in [*map(record, ANSWERS), *map(record_session, SESSIONS)]:
        print(f'written: {target.name}, {target.stat().st_size:,} bytes')


if __name__ == '__main__':
    main()

"""`to_cli` in a pseudo-terminal: the question is on the screen, and the chat goes on after the answer."""

import sys
import textwrap
from typing import Any

import pytest

PROGRAM = """
    import asyncio, sys
    from pydantic_ai_deferred import Agent
    from tests.loop.scripted import call, scripted, text

    agent = Agent(scripted([text('Let me look.'), call('delete', '1', path='a')], 'It is gone.'))

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        return f'deleted {path}'

    def ask(ctx, requests):
        print('The agent wants to call delete', 'path = [b]a[/b]', sep='\\n')
        answer = input('Allow it? [y/n] ')
        return requests.build_results(approvals={'1': answer == 'y'})

    {start}
"""

STARTS = {
    'to_cli_sync': 'agent.to_cli_sync(deferred_tool_handler=ask)',
    'to_cli': 'asyncio.run(agent.to_cli(deferred_tool_handler=ask))',
}


class Terminal:
    """A program in a pseudo-terminal, and the screen that a person would see."""

    def __init__(self, program: str) -> None:
        self.pexpect: Any = pytest.importorskip('pexpect')
        pyte: Any = pytest.importorskip('pyte')
        self.child = self.pexpect.spawn(
            sys.executable, ['-c', program], encoding='utf-8', timeout=60, dimensions=(30, 100)
        )
        self.screen = pyte.Screen(100, 30)
        self.stream = pyte.Stream(self.screen)

    def wait_for(self, *lines: str) -> list[str]:
        """Read until the lines are on the screen, in that order; the screen then."""
        while True:
            shown = [line.rstrip() for line in self.screen.display if line.strip()]
            remaining = iter(shown)
            if all(any(line in each for each in remaining) for line in lines):
                return shown
            try:
                output = self.child.read_nonblocking(4096, timeout=60)
            except self.pexpect.EOF:
                raise AssertionError(f'{lines} not found on {shown}') from None
            self.stream.feed(output)
            if '\x1b[6n' in output:  # prompt_toolkit asks the terminal where the cursor is
                self.child.send(f'\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R')


@pytest.mark.usefixtures('own_home')  # the chat keeps what was typed
@pytest.mark.parametrize('start', STARTS)
def test_a_chat_asks_in_the_terminal_and_goes_on(start: str):
    pytest.importorskip('prompt_toolkit')
    terminal = Terminal(textwrap.dedent(PROGRAM).replace('{start}', STARTS[start]))

    terminal.wait_for('➤')
    terminal.child.send('remove a\r')
    terminal.wait_for('The agent wants to call delete', 'Allow it?')
    terminal.child.send('y\r')
    terminal.wait_for('remove a', 'Called tool delete', 'It is gone.', '➤')
    terminal.child.close(force=True)

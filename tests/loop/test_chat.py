"""`to_cli` in a pseudo-terminal: the whole question is on the screen, and so are the answer and what follows."""

import sys
import textwrap
from importlib.metadata import version
from typing import Any

import pytest
from pydantic_ai_deferred.terminal import chatting, terminal_to_handler

pytestmark = pytest.mark.layer_only

PROGRAM = """
    import asyncio, sys
    from pydantic_ai_deferred import Agent, HandlerAgent
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
    'own handler': 'HandlerAgent(agent, deferred_tool_handler=ask).to_cli_sync()',
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


@pytest.mark.skipif(
    version('pydantic-ai-slim') != '2.68.0', reason='the lines the chat itself shows are those of 2.68.0'
)
@pytest.mark.usefixtures('own_home')  # the chat keeps what was typed
@pytest.mark.parametrize('start', STARTS)
def test_the_whole_question_is_on_the_screen(start: str):
    pytest.importorskip('prompt_toolkit')
    terminal = Terminal(textwrap.dedent(PROGRAM).replace('{start}', STARTS[start]))
    question = ('The agent wants to call delete', 'path = [b]a[/b]', 'Allow it? [y/n]')

    terminal.wait_for('➤')
    terminal.child.send('remove a\r')
    asked = terminal.wait_for('Let me look.', *question)
    terminal.child.send('y\r')
    answered = terminal.wait_for('remove a', *question, 'Called tool delete', 'It is gone.', '➤')
    terminal.child.close(force=True)

    assert asked[-1] == 'Allow it? [y/n]'
    assert 'Allow it? [y/n] y' in answered


def test_outside_of_a_chat_a_live_display_is_left_alone():
    live = pytest.importorskip('rich.live')
    console = pytest.importorskip('rich.console')
    display = live.Live('text', console=console.Console(force_terminal=True), auto_refresh=False)

    with display, terminal_to_handler():
        assert display.is_started


def test_in_a_chat_the_display_is_down_while_the_handler_is_asked_and_shows_the_same_afterwards():
    live = pytest.importorskip('rich.live')
    console = pytest.importorskip('rich.console')
    display = live.Live('text', console=console.Console(force_terminal=True), auto_refresh=False)

    with display, chatting():
        with terminal_to_handler():
            assert not display.is_started
        assert display.is_started
        assert str(display.get_renderable()) == 'text'
        with terminal_to_handler():
            display.update('newer')
        assert str(display.get_renderable()) == 'newer'


def test_in_a_chat_without_a_display_nothing_happens(capsys: pytest.CaptureFixture[str]):
    with chatting(), terminal_to_handler():
        pass

    assert capsys.readouterr().out == ''

"""A screen in memory."""

import io

from tool_approval.assistant.screen import Screen


class Memory(io.StringIO):
    """A stream that is, or is not, a terminal, of so many columns."""

    encoding = 'utf-8'

    def __init__(self, *, is_terminal=False):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


class ShownScreen(Screen):
    """Keeps all that it was asked to show."""

    given_columns = None

    @property
    def shown(self):
        return self._out.getvalue()

    @property
    def columns(self):
        return super().columns if self.given_columns is None else self.given_columns


def shown_screen(*, columns=None, is_terminal=False, term='xterm', **environment):
    screen = ShownScreen(Memory(is_terminal=is_terminal), environment={'TERM': term, **environment})
    screen.given_columns = columns
    return screen

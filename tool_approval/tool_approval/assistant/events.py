"""Show a run: the model's text as it comes, which tools run, and what they returned."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)

from tool_approval.core.request import ApprovalRequest
from tool_approval.display import wrap

from .screen import Screen, StreamWrapper

MOST_LINES = 12
"""Chosen: of a longer result, the model gets all and the person the beginning and a count."""

LONGEST_LINE = 500
"""Chosen: characters of one line of a result, and of one call's arguments."""

LONGEST_NAME = 100
"""Chosen: characters of a tool's name. A model may call one that does not exist."""


class EventPrinter:
    """Prints the events of a run, for `event_stream_handler=`. Nothing that a model or a tool wrote can draw.

    A call about which somebody was asked has been shown by the question; of others, the line with their arguments
    stands above the result.
    """

    def __init__(self, screen: Screen, calls: Calls) -> None:
        """Begin at the start of a line.

        Args:
            screen: Where it is shown.
            calls: Is told what runs, and tells what was asked.
        """
        self._screen = screen
        self._calls = calls
        self._flow = StreamWrapper(screen)
        self._made: dict[str, ToolCallPart] = {}

    async def __call__(self, ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Print each event as it comes."""
        async for event in events:
            self.show(event)
        self._flow.end()

    def show(self, event: AgentStreamEvent) -> None:
        """Print one event."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._calls.go_on()
                self._flow.add(text)
            case FunctionToolCallEvent(part=call):
                self._flow.end()
                self._made[call.tool_call_id] = call
                self._calls.begin(call.tool_call_id, call.tool_name)
            case FunctionToolResultEvent(part=part):
                self._flow.end()
                asked = self._calls.end(part.tool_call_id)
                if asked is None:
                    self._call(self._made[part.tool_call_id])
                elif len(self._made) > 1:
                    self._line(f'{self._name(part.tool_name or "")}: {self._screen.escaped(asked[:LONGEST_LINE])}')
                self._result(_text_of(part))
                if not self._calls.are_any_running:
                    self._made.clear()
            case _:
                pass

    def end(self) -> None:
        """The turn has ended, maybe in mid-sentence: end the line, and name the calls that were not shown yet."""
        self._flow.end()
        for call_id, call in self._made.items():
            if self._calls.is_unseen(call_id):
                self._call(call)
        self._made.clear()

    def _call(self, call: ToolCallPart) -> None:
        arguments = self._screen.escaped(call.args_as_json_str()[:LONGEST_LINE])
        self._line(f'{self._name(call.tool_name)} {arguments}')

    def _name(self, name: str) -> str:
        return self._screen.escaped(name[:LONGEST_NAME])

    def _line(self, text: str) -> None:
        arrow = '->' if self._screen.ascii_only else '\N{RIGHTWARDS ARROW}'
        self._screen.write(f'{self._screen.cut(f"  {arrow} {text}")}\n')

    def _result(self, text: str) -> None:
        bar = '|' if self._screen.ascii_only else '\N{BOX DRAWINGS LIGHT VERTICAL}'
        lines = text.rstrip('\n').split('\n')
        for line in lines[:MOST_LINES]:
            shown = self._screen.escaped(line[:LONGEST_LINE])
            for start, end in wrap(shown, self._screen.columns - 8):
                self._screen.write(f'  {bar} {shown[start:end]}'.rstrip() + '\n')
            if len(line) > LONGEST_LINE:
                self._screen.write(f'  {bar} [{len(line) - LONGEST_LINE:,} more characters]\n')
        if len(lines) > MOST_LINES:
            self._screen.write(f'  {bar} [{len(lines) - MOST_LINES:,} more lines]\n')


def _text_of(part: Any) -> str:
    # The part of a call that is to be tried again has but one of the two.
    whole = getattr(part, 'model_response_str', None) or part.model_response
    text = str(whole())
    # The framework tells a model of what failed, or was refused, as an object with this one key.
    if not text.startswith('{"error"'):
        return text
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return told['error'] if list(told) == ['error'] and isinstance(told['error'], str) else text


SHOWN_AFTER_S = 1.0
"""Chosen: what takes less needs no sign that it goes on."""


@dataclass
class _Call:
    name: str
    began: float


class Calls:
    """Told by the printer and by the UI; asked by the line that shows progress."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Nothing runs.

        Args:
            now: Seconds that never go back.
        """
        self._now = now
        self._running: dict[str, _Call] = {}
        self._asked: dict[str, str] = {}
        self._waits_since = now()

    def clear(self) -> None:
        """A turn begins."""
        self._running.clear()
        self._asked.clear()
        self.go_on()

    def go_on(self) -> None:
        """Something came from the model, or a question was answered: what is waited for is waited for from now."""
        self._waits_since = self._now()
        for call in self._running.values():
            call.began = self._waits_since

    def begin(self, call_id: str, name: str) -> None:
        """A call was made."""
        self._running[call_id] = _Call(name, self._now())

    def end(self, call_id: str) -> str | None:
        """A call has its result.

        Returns:
            What somebody was asked, `None` if nobody was.
        """
        self._running.pop(call_id, None)
        self._waits_since = self._now()
        return self._asked.pop(call_id, None)

    def ask(self, request: ApprovalRequest) -> None:
        """Somebody is asked about a call."""
        if request.tool_call_id is not None:
            self._asked[request.tool_call_id] = request.attributed_description

    def is_unseen(self, call_id: str) -> bool:
        """Whether that call has no result yet, and nobody was asked about it."""
        return call_id in self._running and call_id not in self._asked

    @property
    def are_any_running(self) -> bool:
        """Whether a call has no result yet."""
        return bool(self._running)

    def progress(self) -> str | None:
        """What takes longer than a moment, and for how many seconds it does; not escaped."""
        since = min((call.began for call in self._running.values()), default=self._waits_since)
        seconds = self._now() - since
        if seconds < SHOWN_AFTER_S:
            return None
        names = ', '.join(dict.fromkeys(call.name[:100] for call in self._running.values()))
        return f'{names or "waiting for the model"} {seconds:.0f} s'


EVERY_S = 0.5
"""Chosen: seconds between two looks."""


async def show_progress(
    screen: Screen, calls: Calls, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Show it until cancelled. Where nobody looks, or a question is open, nothing is shown.

    Args:
        screen: Where it is shown.
        calls: What runs.
        sleep: Waits so many seconds.

    Raises:
        OSError: The screen cannot be written to.
    """
    while True:
        await sleep(EVERY_S)
        told = calls.progress()
        if told is not None:
            screen.pass_by(f'  ... {screen.escaped(told)}')

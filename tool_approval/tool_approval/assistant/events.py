"""What a person sees of a run: the model's text as it comes, which tools ran, and what they returned."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable
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

from tool_approval.display import wrap

from .calls import Calls
from .flowing import Flow
from .screen import Screen

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
        self._flow = Flow(screen)
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

"""Show a turn: the text of the model as it arrives, the tools that run, and their results."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from typing import Any, cast

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
from tool_approval.display.fact_texts import summary
from tool_approval.tools.shell.running import BoundedOutput

from .screen import Screen, StreamWrapper

FIRST_LINES, LAST_LINES = 4, 8
"""Number of lines that the user sees from the start and from the end of a long result."""

MOST_CALLS = 20
"""Maximum number of calls that are listed above a question."""

LONGEST_LINE = 500
"""Each line of a result, and the arguments of each call, are cut to this many characters."""

LONGEST_NAME = 100
"""A tool's name is cut to this many characters, because a model can invent long names."""

SHOWN_AFTER_S = 1.0
"""Seconds that a step must take before its progress is shown."""

LIVE_LINES = 4
"""Number of lines that the user sees from the end of the output of a command that runs."""

_TAIL_BYTES = 4096
"""Bytes of the output of which `LIVE_LINES` are taken."""

_KEPT_BYTES = 16_384
"""Maximum bytes of the output that are kept of a call that the user stops."""

_ENDS = re.compile('[\r\n]+')
"""Ends of lines. Progress bars return to the start of their line."""

EVERY_S = 0.5
"""Seconds between two updates of the progress line."""


class TurnView:
    """Shows the turns of a conversation. Text from models and tools is escaped.

    If the user was not asked about a call, a line with the call's arguments appears above the result of the call.
    """

    def __init__(self, screen: Screen, now: Callable[[], float] = time.monotonic) -> None:
        """Show turns on `screen`. `now` returns monotonic seconds."""
        self.screen = screen
        self.task: asyncio.Task[Any] | None = None
        """Task of the running turn; `None` between turns."""
        self._now = now
        self._text = StreamWrapper(screen)
        self._made: dict[str, ToolCallPart] = {}
        self._began: dict[str, float] = {}
        self._asked: dict[str, str] = {}
        self._running: str | None = None
        self._output = BoundedOutput(_KEPT_BYTES)
        self._tail = b''
        self._waits_since = now()

    def stop(self) -> None:
        """Stop the running turn, if there is one. Call this only in the thread of the event loop."""
        if self.task is not None:
            self.task.cancel()

    def begin(self) -> None:
        """Begin a turn."""
        self._began.clear()
        self._asked.clear()
        self._running = None
        self.go_on()

    def end(self) -> None:
        """End the current line, and list the calls of the turn that were not shown yet."""
        self._text.end()
        for call_id, call in self._made.items():
            if call_id in self._began and call_id not in self._asked:
                self._call(call)
            if call_id in self.printed:
                self._result(self.printed[call_id])
        self._made.clear()
        self._running = None

    async def __call__(self, ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Show the events of a run as they arrive. Pass this object as `event_stream_handler=`."""
        async for event in events:
            self.show(event)
        self._text.end()

    def show(self, event: AgentStreamEvent) -> None:
        """Show an event."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self.go_on()
                self._text.add(text)
            case FunctionToolCallEvent(part=call):
                self._text.end()
                self._made[call.tool_call_id] = call
                self._began[call.tool_call_id] = self._now()
            case FunctionToolResultEvent(part=part):
                self._text.end()
                self._began.pop(part.tool_call_id, None)
                self._running = None if part.tool_call_id == self._running else self._running
                self._waits_since = self._now()
                asked = self._asked.pop(part.tool_call_id, None)
                if asked is None:
                    self._call(self._made[part.tool_call_id])
                elif len(self._made) > 1:
                    self._line(part.tool_name or '', ':', asked)
                self._result(_text_of(part))
                if not self._began:
                    self._made.clear()
            case _:
                pass

    def run(self, call_id: str | None) -> None:
        """Record that a call of a response begins to run. Its output follows."""
        self._running, self._output, self._tail = call_id, BoundedOutput(_KEPT_BYTES), b''
        if call_id in self._began:
            self._began[call_id] = self._now()

    def add_output(self, stream: int, data: bytes) -> None:
        """Record the next part of the output of the call that runs, of whichever stream."""
        self._output.add(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:]

    @property
    def printed(self) -> Mapping[str, str]:
        """By the id of a call that has no result yet, what it has printed, if anything."""
        has_printed = self._running is not None and self._running in self._began and self._output.total
        return {self._running: self._output.text()} if self._running is not None and has_printed else {}

    def ask(self, request: ApprovalRequest) -> None:
        """Record that the user is asked about a call."""
        if request.tool_call_id is not None:
            self._asked[request.tool_call_id] = summary(request)

    def show_order(self) -> None:
        """List the calls of a response that have not run. If the user must answer all or none of them, list nothing."""
        calls = [call for call_id, call in self._made.items() if call_id in self._began]
        asked = [call for call in calls if call.tool_call_id in self._asked]
        if not asked or len(asked) == len(calls):
            return
        self.screen.say('  Next, in this order (? needs your answer):')
        for call in calls[:MOST_CALLS]:
            if call in asked:
                self._line(call.tool_name, ':', self._asked[call.tool_call_id], arrow='?')
            else:
                self._call(call)
        if len(calls) > MOST_CALLS:
            self.screen.say(f'  and {len(calls) - MOST_CALLS:,} more calls')

    def go_on(self) -> None:
        """Restart the progress timer, for example when the model writes text."""
        self._waits_since = self._now()
        self._began = dict.fromkeys(self._began, self._waits_since)

    async def show_progress(self, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Until cancelled, show each step that takes longer than `SHOWN_AFTER_S`: its elapsed seconds, and the last
        lines that it has printed.
        """
        while True:
            await sleep(EVERY_S)
            running = [call_id for call_id in self._began if call_id == self._running] or [*self._began]
            seconds = self._now() - min((self._began[call_id] for call_id in running), default=self._waits_since)
            if seconds >= SHOWN_AFTER_S:
                names = dict.fromkeys(self._name(self._made[call_id].tool_name) for call_id in running)
                last = f'  ... {", ".join(names) or "waiting for the model"} {seconds:.0f} s'
                self.screen.pass_by(*self._last_lines(), last)

    def _last_lines(self) -> list[str]:
        bar = '|' if self.screen.ascii_only else '\N{BOX DRAWINGS LIGHT VERTICAL}'
        lines = [line for line in _ENDS.split(self._tail.decode(errors='replace')) if line.strip()]
        is_running = self._running is not None and self._running in self._began
        return [f'  {bar} {self.screen.escaped(line[:LONGEST_LINE])}' for line in lines[-LIVE_LINES:] if is_running]

    def _call(self, call: ToolCallPart) -> None:
        self._line(call.tool_name, '', call.args_as_json_str())

    def _line(self, name: str, sign: str, text: str, *, arrow: str = '') -> None:
        arrow = arrow or ('->' if self.screen.ascii_only else '\N{RIGHTWARDS ARROW}')
        line = f'  {arrow} {self._name(name)}{sign} {self.screen.escaped(text[:LONGEST_LINE])}'
        self.screen.write(f'{self.screen.cut(line)}\n')

    def _name(self, name: str) -> str:
        return self.screen.escaped(name[:LONGEST_NAME])

    def _result(self, text: str) -> None:
        bar = '|' if self.screen.ascii_only else '\N{BOX DRAWINGS LIGHT VERTICAL}'
        cut = '*' if self.screen.ascii_only else '\N{VERTICAL ELLIPSIS}'
        lines = text.rstrip('\n').split('\n')
        left_out = len(lines) - FIRST_LINES - LAST_LINES
        for number, line in enumerate(lines):
            if left_out > 1 and number == FIRST_LINES:
                # A different mark than that of lines, because a line may contain the same text.
                self.screen.write(f'  {cut} {left_out:,} more lines\n')
            if left_out > 1 and FIRST_LINES <= number < len(lines) - LAST_LINES:
                continue
            shown = self.screen.escaped(line[:LONGEST_LINE])
            for start, end in wrap(shown, self.screen.columns - 4):
                self.screen.write(f'  {bar} {shown[start:end]}'.rstrip() + '\n')
            if len(line) > LONGEST_LINE:
                self.screen.write(f'  {cut} {len(line) - LONGEST_LINE:,} more characters\n')


def _text_of(part: Any) -> str:
    content: object = part.content
    if isinstance(content, list) and getattr(part, 'outcome', 'retried') == 'retried':
        errors = cast('list[Mapping[str, Any]]', content)
        wrong = '; '.join(f'{".".join(map(str, each["loc"])) or "all"}: {each["msg"]}' for each in errors)
        return f'The arguments were invalid, so the model must try again: {wrong}'
    # The part of a call that the model must try again has only one of these two methods.
    whole = getattr(part, 'model_response_str', None) or part.model_response
    text = str(whole())
    # Pydantic AI wraps the text of a failed or refused call in an object with this one key.
    if not text.startswith('{"error"'):
        return text
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return values['error'] if list(values) == ['error'] and isinstance(values['error'], str) else text

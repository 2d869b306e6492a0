"""Hold a conversation with an agent. Stopping one turn does not end the conversation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from pydantic_ai import RunContext, capture_run_messages
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits
from pydantic_ai_deferred import DeferredToolHandler, HandlerFunc

from tool_approval.core.errors import ApprovalError
from tool_approval.core.memory import ApprovalMemory
from tool_approval.display import escape_line

from .errors import error_text
from .events import TurnView
from .saving import SavedConversation, write_transcript

End = Literal['done', 'stopped']
"""How a turn ended: with an answer, or because the user stopped it."""

STOPPED = 'The user stopped this turn.'
"""Text that replaces the model's answer in the history if the user stopped the turn."""

FAILED = 'An error ended this turn.'
"""Text that replaces the model's answer in the history if the turn failed."""

LIMITED = 'This turn ended, because it reached its limit of requests.'
"""Text that replaces the model's answer in the history if the turn made too many requests."""

REQUESTS = 1000
"""Default of the most requests that one turn may make to the model. Long work takes some hundred."""

NO_RESULT = 'The run ended before this call returned. The call may have taken effect, fully or in part.'
"""Result in the history for a tool call that did not return."""


class Conversation:
    """Keeps the history and the memory between turns."""

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        *,
        handler: HandlerFunc[Any],
        view: TurnView,
        memory: ApprovalMemory,
        model: Model | str | None = None,
        messages: list[ModelMessage] | None = None,
        requests: int = REQUESTS,
        end: Callable[[], object] = tuple,
    ) -> None:
        """Start a conversation, or continue it with `messages`. `model` replaces the model of the agent, and a turn
        makes at most `requests` requests to it. `end` ends what the tools of the conversation keep.
        """
        self.end = end
        self.view = view
        self.memory = memory
        self._agent = agent
        is_capability = isinstance(handler, AbstractCapability)
        self._capabilities = [cast('Any', handler) if is_capability else DeferredToolHandler(handler)]
        self._model = model
        self._limits = UsageLimits(request_limit=requests)
        self.messages = messages or []
        """Messages of the conversation. The messages of a stopped turn are included up to the stop."""

    async def take_turn(
        self, prompt: str, *, keep: Callable[[list[ModelMessage]], object] = lambda so_far: None
    ) -> End:
        """Run the agent on a message of the user. Ctrl-C stops the turn. This function must be called in the main
        thread.

        Args:
            prompt: The message.
            keep: Function to call before each tool call, with a history from which the conversation can continue.

        Raises:
            SystemExit: The terminal was closed, or a signal ended this process. The exit status is 128 plus the signal
                number.
            Exception: The run failed. After an error, the conversation can continue.
        """
        self.view.begin()
        with stops_at_signals(self.view.stop), capture_run_messages() as captured:

            async def kept(events: AsyncIterable[AgentStreamEvent]) -> AsyncIterator[AgentStreamEvent]:
                async for event in events:
                    if isinstance(event, FunctionToolCallEvent):
                        keep(closed(self.messages, captured, prompt, answer=FAILED))
                    yield event

            async def show(ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
                await self.view(ctx, kept(events))

            turn = self._agent.run(
                prompt,
                model=self._model,
                message_history=self.messages,
                event_stream_handler=show,
                capabilities=self._capabilities,
                usage_limits=self._limits,
            )
            self.view.task = asyncio.create_task(turn)
            progress = asyncio.create_task(self.view.show_progress())
            try:
                self.messages = (await self.view.task).all_messages()
            except asyncio.CancelledError:
                self.messages = closed(self.messages, captured, prompt, printed=self.view.printed)
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # the whole conversation is cancelled
                    raise
                return 'stopped'
            except Exception as error:
                answer = LIMITED if isinstance(error, UsageLimitExceeded) else FAILED
                self.messages = closed(self.messages, captured, prompt, answer=answer)
                raise
            finally:
                self.view.task = None
                progress.cancel()
                await asyncio.wait([progress])
                # The terminal may be gone, but the history must still be saved.
                with contextlib.suppress(OSError):
                    self.view.end()
        return 'done'


def has_answer(messages: Sequence[ModelMessage]) -> bool:
    """Whether the model has written text or called a tool."""
    return any(
        not (isinstance(part, TextPart) and part.content in (FAILED, LIMITED, STOPPED))
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
    )


@contextlib.contextmanager
def stops_at_signals(stop: Callable[[], object]) -> Generator[None]:
    """Call `stop` on Ctrl-C. On SIGHUP and SIGTERM, call `stop` and exit at the end of the block."""
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def leave(number: int) -> None:
        received.append(number)
        stop()

    loop.add_signal_handler(signal.SIGINT, stop)
    # Ignored signals stay ignored, so that the program goes on under `nohup`.
    leaving = [each for each in (signal.SIGHUP, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    for number in leaving:
        loop.add_signal_handler(number, leave, number)
    try:
        yield
    finally:
        for number in (signal.SIGINT, *leaving):
            loop.remove_signal_handler(number)
        if received:
            sys.exit(128 + received[0])


def closed(
    before: list[ModelMessage],
    captured: list[ModelMessage],
    prompt: str,
    *,
    answer: str = STOPPED,
    printed: Mapping[str, str] = MappingProxyType({}),
) -> list[ModelMessage]:
    """Return a history that a new turn can continue. Each call in the history has a result. If the model's last
    answer is missing, `answer` takes its place. `printed` has what a call printed before it ended, by the call's id.
    """
    messages = [message for message in captured if message.parts]
    if len(messages) <= len(before):
        messages = [*before, ModelRequest([UserPromptPart(prompt)])]
    parts = [part for message in messages for part in message.parts]
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    # A call that the model has to repeat has an answer too, whose type depends on the release of the framework.
    answered = {getattr(part, 'tool_call_id', None) for message in requests for part in message.parts}
    missing = [
        ToolReturnPart(part.tool_name, _without_result(printed.get(part.tool_call_id)), tool_call_id=part.tool_call_id)
        for part in parts
        if isinstance(part, ToolCallPart) and part.tool_call_id not in answered
    ]
    if missing:
        messages.append(ModelRequest(list(missing)))
    if isinstance(messages[-1], ModelRequest):
        messages.append(ModelResponse([TextPart(answer)]))
    return messages


def _without_result(printed: str | None) -> str:
    return NO_RESULT if printed is None else f'{NO_RESULT} Until then, it printed:\n{printed}'


EXIT_FAILED = 1
"""Exit status if the last turn failed."""
EXIT_STOPPED = 130
"""Exit status if the user stopped the last turn. Shells report this status for a program that Ctrl-C ended."""

_COMMAND = re.compile(r'/[a-z]+(?:\s|$)')

HELP = """\
  /approvals   list remembered approvals; /forget N forgets number N
  /save FILE   write the conversation to a new file, as Markdown
  /discard     delete the conversation, and start a new one
  /help        show this help
  /quit        quit, like Ctrl-D
  Enter sends; Alt-Enter, or a backslash before Enter, begins a new line. Ctrl-C stops the agent.
  At the prompt, the Up and Down keys recall messages. Ctrl-C clears your input; press Ctrl-C again to quit.
"""


def hold_session(
    conversation: Conversation,
    prompts: Iterable[str],
    *,
    saved: SavedConversation | None = None,
    obeys: bool = True,
    debug: bool = False,
) -> int:
    """Run one turn for each prompt. `prompts` may wait for the user between turns.

    The conversation is saved during and after each turn, even if the turn fails or is stopped.

    Args:
        conversation: The conversation.
        prompts: The messages of the user.
        saved: The file to save to; `None` to save nothing.
        obeys: Whether prompts such as `/word` are commands to this program instead of messages to the agent.
        debug: Whether to raise the error of a turn instead of printing it.

    Returns: The exit status for the last turn: 0, `EXIT_FAILED` or `EXIT_STOPPED`.
    """

    def keep(messages: list[ModelMessage]) -> None:
        # The program may be killed during a turn. A failure to save is reported at the end of the turn.
        if saved is not None and has_answer(messages):
            with contextlib.suppress(ApprovalError):
                saved.save(messages)

    status, write = 0, conversation.view.screen.write
    with asyncio.Runner() as runner:
        for prompt in prompts:
            if obeys and _COMMAND.match(prompt):
                if prompt.split() == ['/quit']:
                    break
                try:
                    _obey(prompt, conversation, saved)
                except ApprovalError as error:
                    write(f'  {escape_line(str(error))}\n')
                continue
            try:
                end = runner.run(conversation.take_turn(prompt, keep=keep))
                status = 0 if end == 'done' else EXIT_STOPPED
                if end == 'stopped':
                    write('Stopped.\n')
            except Exception as error:
                if debug:
                    raise
                status = EXIT_FAILED
                write(f'The run failed: {error_text(error)}\n')
                advice = how_to_go_on(error)
                if advice is not None:
                    conversation.view.screen.say(advice)
            finally:
                # If a failed first turn were saved, it could not be repeated under the same name.
                if saved is not None and has_answer(conversation.messages):
                    saved.save(conversation.messages)
    return status


def how_to_go_on(error: Exception) -> str | None:
    """Return what the user can do if a limit ended a turn; `None` for any other error."""
    if isinstance(error, UsageLimitExceeded):
        return 'Nothing is lost. Send another message, such as `Go on`, to continue. `--requests N` raises the limit.'
    if isinstance(error, UnexpectedModelBehavior) and 'max retries' in str(error):
        return (
            'Nothing is lost. Send another message, such as `Try it otherwise`, to continue. With `--retries N`, the '
            'model may repeat an invalid call more often.'
        )
    return None


def _obey(prompt: str, conversation: Conversation, saved: SavedConversation | None) -> None:
    write, memory = conversation.view.screen.write, conversation.memory
    approvals, words = memory.list_approvals(), prompt.split()
    match words:
        case ['/approvals']:
            for number, approval in enumerate(approvals, start=1):
                # Approvals of the session come first.
                span = 'denied' if approval.is_denial else 'always' if number > len(memory) else 'session'
                left = '' if approval.left is None else f' ({approval.left.text(datetime.now(UTC))})'
                text = f'{approval.label}{left}'
                write(f'  {number}. {span}  {escape_line(approval.tool_name)}: {escape_line(text)}\n')
            if not approvals:
                write('  No approval is remembered.\n')
        case ['/forget', number] if number.isdecimal() and 1 <= int(number) <= len(approvals):
            memory.revoke(approvals[int(number) - 1].id)
            write(f'  Forgotten: {escape_line(approvals[int(number) - 1].label)}\n')
        case ['/forget', *_]:
            write(f'  /forget takes a number from the list of /approvals, which has {len(approvals)} entries.\n')
        case ['/save']:
            write('  /save takes the name of a new file.\n')
        case ['/save', *_]:
            path = os.path.expanduser(prompt.split(maxsplit=1)[1])
            write_transcript(conversation.messages, Path(path))
            write(f'  Written: {escape_line(path)}\n')
        case ['/discard']:
            conversation.messages = []
            conversation.end()
            if saved is not None:
                saved.discard()
            write('  The conversation is deleted. Your next message starts a new conversation.\n')
        case ['/help', *_]:
            write(HELP)
        case _:
            write(f'  There is no command {escape_line(words[0])}. The commands are:\n{HELP}')

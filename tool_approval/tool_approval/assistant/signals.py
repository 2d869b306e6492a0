"""Signals while a turn runs: Ctrl-C stops it, a terminal that closes ends the program in good order."""

from __future__ import annotations

import asyncio
import signal
import sys

from .conversation import Conversation, End

_LEAVE = (signal.SIGHUP, signal.SIGTERM)


async def take_turn(conversation: Conversation, prompt: str) -> End:
    """Take a turn that Ctrl-C stops. Only in the main thread.

    Raises:
        SystemExit: The terminal was closed, or the program told to end: after the turn was stopped, and its tools with
            it. The status is that of the shell, 128 and the number of the signal.
        Exception: What the turn raises.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def leave(number: int) -> None:
        received.append(number)
        conversation.stop()

    loop.add_signal_handler(signal.SIGINT, conversation.stop)
    # What is ignored stays so: `nohup` means that the program goes on.
    leaving = [number for number in _LEAVE if signal.getsignal(number) is not signal.SIG_IGN]
    for number in leaving:
        loop.add_signal_handler(number, leave, number)
    try:
        return await conversation.take_turn(prompt)
    finally:
        for number in (signal.SIGINT, *leaving):
            loop.remove_signal_handler(number)
        if received:
            sys.exit(128 + received[0])

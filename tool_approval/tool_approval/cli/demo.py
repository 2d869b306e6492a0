"""Implement `tool-approval demo`: try approvals with real processes and files, without an API key or a network."""

from __future__ import annotations

import argparse
import asyncio
import sys
from importlib.util import find_spec

from tool_approval.assistant.asking import MakeAsked, PreparedAnswers, ask_at_terminal
from tool_approval.assistant.errors import one_line_errors
from tool_approval.assistant.screen import Screen
from tool_approval.assistant.stories import STORIES
from tool_approval.assistant.stories.scene import play
from tool_approval.core.errors import MissingExtraError

from .output import INTERRUPTED, Output, UsageError


def run(options: argparse.Namespace, output: Output) -> int:
    """Play the story that the arguments name.

    Raises:
        UsageError: The answers are not letters, or a model is given for a story that uses no model.
        MissingExtraError: The story needs the extra `durable`.
        AssistantError: The given model cannot be used.
    """
    if options.answers is not None and not options.answers.isalpha():
        raise UsageError('--answers takes letters, such as yn')
    if options.story == 'restart' and options.model is not None:
        raise UsageError('the story `restart` uses no model; leave out --model')
    screen = Screen()
    with one_line_errors(debug=options.debug):
        make_ui = choose_ui(options.answers, screen)
        if options.story == 'restart':
            if find_spec('dbos') is None:  # pragma: no cover - a test takes dbos away in a process of its own
                raise MissingExtraError('dbos', extra='durable')
            from tool_approval.assistant.stories.restart import play_restart

            playing = play_restart(make_ui=make_ui, screen=screen)
        else:
            playing = play(STORIES[options.story], make_ui=make_ui, screen=screen, model=options.model)
        end = asyncio.run(playing)
    return 0 if end == 'done' else INTERRUPTED


def choose_ui(answers: str | None, screen: Screen) -> MakeAsked:
    """Return a UI that uses `answers` if given, otherwise standard input, or the terminal if that is the input."""
    if answers is not None:
        return lambda memory, presenters: PreparedAnswers(iter(answers.lower()), screen)
    if not sys.stdin.isatty():
        lines = (line.strip().lower() for line in sys.stdin)
        return lambda memory, presenters: PreparedAnswers(lines, screen)
    return ask_at_terminal

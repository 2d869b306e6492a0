"""`tool-approval demo`: try it, on real processes and files, without a key or a network."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from .output import INTERRUPTED, Output, UsageError

if TYPE_CHECKING:
    from tool_approval.assistant.asking import MakeAsked
    from tool_approval.assistant.screen import Screen


def run(options: argparse.Namespace, output: Output) -> int:
    """Play the story.

    Raises:
        UsageError: There are answers for nobody.
        MissingExtraError: A library is missing.
        AssistantError: The model cannot be used.
    """
    import asyncio

    from tool_approval.assistant.errors import check_extras, one_line_errors

    check_extras()
    # The framework advertises with a banner on standard error, which would stand between the lines of the talk.
    os.environ['PYDANTIC_AI_NO_BANNER'] = '1'
    from tool_approval.assistant.screen import Screen
    from tool_approval.assistant.stories import STORIES
    from tool_approval.assistant.stories.scene import play

    if options.answers is not None and not options.answers.isalpha():
        raise UsageError('--answers takes letters, such as yn')
    screen = Screen()
    with one_line_errors(debug=options.debug):
        end = asyncio.run(
            play(
                STORIES[options.story],
                make_ui=choose_ui(options.answers, screen),
                screen=screen,
                model=options.model,
            )
        )
    return 0 if end == 'done' else INTERRUPTED


def choose_ui(answers: str | None, screen: Screen) -> MakeAsked:
    """Whom the agent asks: nobody, where there are answers or a pipe."""
    from tool_approval.assistant.asking import PreparedAnswers
    from tool_approval.ui.terminal import TerminalUI

    if answers is not None:
        return lambda memory, presenters: PreparedAnswers(iter(answers.lower()), screen)
    if not sys.stdin.isatty():
        lines = (line.strip().lower() for line in sys.stdin)
        return lambda memory, presenters: PreparedAnswers(lines, screen)
    return lambda memory, presenters: TerminalUI(memory=memory, presenters=presenters)

"""`tool-approval run`: an agent on the current directory, under approvals.yaml."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path

from tool_approval.assistant.asking import ask_at_terminal
from tool_approval.assistant.build import build_assistant, load_agent
from tool_approval.assistant.conversation import hold_session
from tool_approval.assistant.errors import one_line_errors
from tool_approval.assistant.prompts import ask_for_prompts
from tool_approval.assistant.saving import SavedConversation
from tool_approval.assistant.screen import Screen
from tool_approval.settings import LoadedSettings, TrustStore, load_settings, trust_settings
from tool_approval.storage.private_file import default_path

from .output import Output, UsageError
from .trust import NOT_TRUSTED, QUESTION, what_it_would_allow

MODEL_VARIABLE = 'TOOL_APPROVAL_MODEL'
"""Names the model where no option does."""


def run(options: argparse.Namespace, output: Output) -> int:
    """Hold the conversation.

    Raises:
        UsageError: There is nothing to say, or no model.
        ApprovalError: It cannot be started; the error says why.
    """
    model = options.model or os.environ.get(MODEL_VARIABLE)
    if model is None and options.agent is None:
        raise UsageError(f'no model is named; use --model NAME, or set {MODEL_VARIABLE}')
    if options.save and options.resume and options.save != options.resume:
        raise UsageError('--save and --resume name two conversations')
    with one_line_errors(debug=options.debug):
        name = options.save or options.resume
        saved = None if name is None else SavedConversation(default_path().parent / 'conversations', name)
        # Held before it is looked up: of two runs at once, one conversation would replace the other.
        with nullcontext() if saved is None else saved.held():
            if saved is not None and not options.resume and saved.exists():
                problem = f'there is a conversation {name!r} already; go on with it by --resume, or name another one'
                raise UsageError(problem)
            return _hold(options, model, output, saved)


def _hold(options: argparse.Namespace, model: str | None, output: Output, saved: SavedConversation | None) -> int:
    directory = Path.cwd()
    messages = saved.load() if saved is not None and options.resume else None
    conversation, notes = build_assistant(
        _settings(options, directory, output),
        state=default_path().parent,
        make_ui=ask_at_terminal,
        screen=Screen(),
        mode='approve_all' if options.approve_all else 'strict' if options.strict else options.mode,
        model=model,
        agent=None if options.agent is None else load_agent(options.agent, directory=directory),
        confined=not options.no_os_sandbox,
        messages=messages,
    )
    for note in notes:
        output.note(note)
    is_talk = options.prompt is None and sys.stdin.isatty()
    if is_talk:
        output.note('say what to do, and press Enter; /help tells more, Ctrl-D leaves')
    prompts = ask_for_prompts() if is_talk else iter([_whole_prompt(options.prompt)])
    return hold_session(conversation, prompts, saved=saved, obeys=is_talk, debug=options.debug)


def _whole_prompt(given: str | None) -> str:
    prompt = given if given is not None else sys.stdin.read()
    if not prompt.strip():
        raise UsageError('there is nothing to do; say it as an argument, or on standard input')
    return prompt


def _settings(options: argparse.Namespace, directory: Path, output: Output) -> LoadedSettings:
    """The settings, trusted if the person says so now."""
    loaded = load_settings(options.config, directory=directory, named=options.config is not None)
    if loaded.trusted:
        return loaded
    output.note(f'{loaded.source} is not trusted: {loaded.why_untrusted}. Until it is, it only makes rules stricter.')
    if sys.stdin.isatty() and options.prompt is None:
        for line in what_it_would_allow(loaded):
            output.note(line)
        if output.confirm(QUESTION, NOT_TRUSTED):
            return trust_settings(loaded, TrustStore())
    else:
        output.note('you are asked about that in a conversation, or by `tool-approval trust`; not here')
    return loaded

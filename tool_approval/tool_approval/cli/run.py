"""`tool-approval run`: an agent on the current directory, under approvals.yaml."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from .output import Output, UsageError

if TYPE_CHECKING:
    from tool_approval.assistant.saving import SavedConversation
    from tool_approval.settings import LoadedSettings

EXAMPLES = """\
tool-approval run --model openai-chat:gpt-5.2                  talk with an agent about this directory
tool-approval run --model openai-chat:gpt-5.2 "Mend the tests" one turn, and the end
tool-approval run --strict "What is in here?"                  nothing that needs approval runs
tool-approval run --agent assistants.mail:agent                an agent of your own
tool-approval run --save mending; tool-approval run --resume mending

exit status: 0 done, 1 the last turn failed, 2 called wrongly or not started, 130 the last turn was stopped
in place of --model, the variable TOOL_APPROVAL_MODEL names the model"""

MODEL_VARIABLE = 'TOOL_APPROVAL_MODEL'
"""Names the model where no option does."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('prompt', nargs='?', help='what to do; without it, you are asked for one turn after the other')
    parser.add_argument('--model', metavar='NAME', help='a Pydantic AI model, such as openai-chat:gpt-5.2')
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument('--mode', choices=('interactive', 'strict', 'approve_all'), help='in place of the settings')
    mode.add_argument('--approve-all', action='store_true', help='approve what would be asked; a block still blocks')
    mode.add_argument('--strict', action='store_true', help='deny what would be asked')
    parser.add_argument('--config', metavar='FILE', help='the settings; a file that is named here is trusted')
    parser.add_argument('--no-os-sandbox', action='store_true', help='do not confine commands')
    parser.add_argument('--agent', metavar='MODULE:NAME', help='an agent of your own, imported from here first')
    parser.add_argument('--save', metavar='NAME', help='keep the conversation under this name')
    parser.add_argument('--resume', metavar='NAME', help='go on with a conversation, and keep it')


def run(options: argparse.Namespace, output: Output) -> int:
    """Hold the conversation.

    Raises:
        UsageError: There is nothing to say, or no model.
        ApprovalError: It cannot be started; the error says why.
    """
    from tool_approval.assistant.errors import check_extras, one_line_errors

    check_extras()
    # The framework advertises with a banner on standard error, which would stand between the lines of the talk.
    os.environ['PYDANTIC_AI_NO_BANNER'] = '1'
    model = options.model or os.environ.get(MODEL_VARIABLE)
    if model is None and options.agent is None:
        raise UsageError(f'no model is named; use --model NAME, or set {MODEL_VARIABLE}')
    if options.save and options.resume and options.save != options.resume:
        raise UsageError('--save and --resume name two conversations')
    with one_line_errors(debug=options.debug):
        return _hold_name_and_talk(options, model, output)


def _hold_name_and_talk(options: argparse.Namespace, model: str | None, output: Output) -> int:
    """The conversation, and meanwhile the name it is kept under."""
    from tool_approval.assistant.saving import SavedConversation
    from tool_approval.storage.private_file import default_path

    name = options.save or options.resume
    saved = None if name is None else SavedConversation(default_path().parent / 'conversations', name)
    # Held before it is looked up: of two runs at once, one conversation would replace the other.
    with nullcontext() if saved is None else saved.held():
        if saved is not None and not options.resume and saved.exists():
            raise UsageError(
                f'there is a conversation {name!r} already; go on with it by --resume, or name another one'
            )
        return _hold(options, model, output, saved)


def _hold(options: argparse.Namespace, model: str | None, output: Output, saved: SavedConversation | None) -> int:
    from tool_approval.assistant.build import build_assistant, load_agent
    from tool_approval.assistant.conversation import hold_session
    from tool_approval.assistant.prompts import ask_for_prompts
    from tool_approval.assistant.screen import Screen
    from tool_approval.storage.private_file import default_path
    from tool_approval.ui.terminal import TerminalUI

    directory = Path.cwd()
    state = default_path().parent
    messages = saved.load() if saved is not None and options.resume else None
    conversation, notes = build_assistant(
        _settings(options, directory, output),
        state=state,
        make_ui=lambda memory, presenters: TerminalUI(memory=memory, presenters=presenters),
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

    return hold_session(
        conversation,
        prompts,
        saved=saved,
        obeys=is_talk,
        debug=options.debug,
    )


def _whole_prompt(given: str | None) -> str:
    prompt = given if given is not None else sys.stdin.read()
    if not prompt.strip():
        raise UsageError('there is nothing to do; say it as an argument, or on standard input')
    return prompt


def _settings(options: argparse.Namespace, directory: Path, output: Output) -> LoadedSettings:
    """The settings, trusted if the person says so now."""
    from tool_approval.settings import TrustStore, load_settings, trust_settings

    loaded = load_settings(options.config, directory=directory, named=options.config is not None)
    if loaded.trusted:
        return loaded
    output.note(f'{loaded.source} is not trusted: {loaded.why_untrusted}. Until it is, it only makes rules stricter.')
    if sys.stdin.isatty() and options.prompt is None:
        from .trust import QUESTION, what_it_would_allow

        for line in what_it_would_allow(loaded):
            output.note(line)
        if output.confirm(QUESTION):
            return trust_settings(loaded, TrustStore())
        output.note('it was not trusted')
    else:
        output.note('you are asked about that in a conversation, or by `tool-approval trust`; not here')
    return loaded

"""Build the conversation of `tool-approval run`: settings, tools, UI and audit log."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai_deferred import Agent, DeferredToolHandler

from tool_approval.audit import JsonlAuditSink, load_key
from tool_approval.core.controller import ApprovalController
from tool_approval.core.errors import AuditError
from tool_approval.core.memory import ApprovalMemory
from tool_approval.integrations.pydantic_ai import Approvals, FileToolset, ShellToolset
from tool_approval.integrations.pydantic_ai.approvals import capabilities_of
from tool_approval.os_sandbox import UnconfinedBackend
from tool_approval.os_sandbox.mounts import FROZEN
from tool_approval.settings import (
    ConfinedShell,
    LoadedSettings,
    SettingsAudit,
    Workspace,
    effective,
    open_workspace,
)
from tool_approval.settings.files import with_defaults
from tool_approval.storage import FileApprovalStore
from tool_approval.storage.private_file import make_private_folder

from .asking import ConversationUI, MakeAsked
from .conversation import REQUESTS, Conversation
from .errors import AssistantError
from .events import TurnView
from .ordering import CallOrder
from .screen import Screen

INSTRUCTIONS = (
    'You work in the directory of the user, with file tools and a shell. Look before you change anything, change as '
    'little as needed, and say briefly what you did. Some calls need the approval of the user. If a call is refused, '
    'the result says why; do not try the call again in another form.'
)

RETRIES = 10
"""Default of how often in a row the model may repeat an invalid call. Small models need several attempts."""


def build_assistant(
    loaded: LoadedSettings,
    *,
    state: Path,
    make_ui: MakeAsked,
    screen: Screen,
    stack: ExitStack,
    mode: str | None = None,
    model: str | None = None,
    agent: AbstractAgent[object, object] | None = None,
    confined: bool = True,
    messages: list[ModelMessage] | None = None,
    requests: int = REQUESTS,
    retries: int = RETRIES,
    timeout_s: float | None = None,
) -> tuple[Conversation, tuple[str, ...]]:
    """Build a conversation, and describe its rules. The function asks no question, and calls no model.

    Args:
        loaded: The settings. If no file was found, the preset `default` applies.
        state: The user's state directory, with the audit log, its key and the approvals remembered as `always`.
        make_ui: Function that makes the UI for questions, given the memory and the presenters.
        screen: The screen that shows the conversation.
        stack: Closes the audit log after the conversation.
        mode: The mode; `None` uses the mode of the settings.
        model: The model; `None` uses the model of the agent.
        agent: The user's own agent; `None` builds one. The policy applies to all of this agent's tools; those without a
            rule and a check run without asking. The agent must not have `Approvals` or another handler of its own.
        confined: Whether to confine commands with an OS sandbox if one works on this machine.
        messages: The conversation so far.
        requests: The most requests that a turn may make to the model.
        retries: How often in a row the model may repeat an invalid call of a tool. An agent of the user keeps its own
            number.
        timeout_s: The most seconds that a command may run; `None` uses the number of the settings.

    Returns: The conversation, and unescaped lines for the user. The lines say which rules apply, and which
        permitted actions the tools cannot perform.

    Raises:
        ApprovalError: The required OS sandbox, the settings, the log or the remembered approvals cannot be used.
        AssistantError: The agent has a handler of its own.
    """
    if agent is not None:
        _reject_handler(agent)
    backend = None if confined else UnconfinedBackend()
    loaded = with_defaults(loaded)
    settings = effective(loaded)
    memory = ApprovalMemory(FileApprovalStore(loaded.directory, state / 'approvals.json'))
    log = state / 'audit' / 'decisions.jsonl'
    try:
        make_private_folder(log.parent)
    except OSError as error:
        raise AuditError(str(log.parent), error.strerror or str(error)) from None
    sink = stack.enter_context(closing(JsonlAuditSink(log, key=load_key(state / 'keys' / 'audit.key'))))
    view = TurnView(screen)
    tools: list[FileToolset | ShellToolset] = []
    end: Callable[[], object] = tuple
    confinement, limits = 'the agent has its own tools, which no OS sandbox confines', ()
    if agent is None:
        workspace = open_workspace(loaded, protected=[state], backend=backend)
        shell = workspace.shell
        shell.on_output = view.add_output
        shell.begun |= set(_commands(messages or ()))
        end = partial(_end, shell, screen)
        # A closed terminal, Ctrl-C and errors come here too. If this process is killed, the kernel ends them.
        stack.callback(end)
        if timeout_s is not None:
            shell.config = shell.config.model_copy(update={'timeout_s': timeout_s})
        limits, reasons = limits_of(workspace)
        tools = [FileToolset(workspace.files), ShellToolset(shell, reasons=reasons)]
        name = workspace.backend.name
        confinement = f'OS sandbox {name}' if name != 'unconfined' else 'no OS sandbox: commands are not confined'
    presenters = {name: presenter for each in tools for name, presenter in each.presenters.items()}
    controller = ApprovalController(
        mode or settings.mode,
        policy=settings.policy,
        ui=ConversationUI(make_ui(memory, presenters), view),
        memory=memory,
        audit=SettingsAudit(sink, loaded),
        presenters=presenters,
        log_unasked=settings.audit.unasked,
    )
    approvals = Approvals(controller, session='conversation', default='required' if agent is None else 'none')
    handler: Approvals | CallOrder = approvals
    if agent is None:
        handler = CallOrder(approvals, starts=view.run)
        guarded = [handler.guarded(each) for each in tools]
        agent = Agent(model, name='assistant', instructions=INSTRUCTIONS, toolsets=guarded, retries=retries)
    source = 'no settings file, so the defaults apply'
    if loaded.source is not None:
        trusted = 'trusted' if loaded.trusted else 'the file is not trusted, so it can only make rules stricter'
        source = f'settings {loaded.source} ({trusted})'
    conversation = Conversation(
        agent,
        handler=handler,
        view=view,
        memory=memory,
        model=model,
        messages=messages,
        requests=requests,
        end=end,
    )
    what = f'model {model or "of the agent"}, mode {controller.mode}'
    return conversation, (what, f'directory {loaded.directory}', confinement, source, *limits)


def _end(shell: ConfinedShell, screen: Screen) -> None:
    """End the background processes of a conversation, and tell the user which."""
    for line in shell.end_conversation():
        # The terminal may be gone.
        with suppress(OSError):
            screen.say(line)


def _commands(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the commands of a conversation that is continued."""
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCallPart) and part.tool_name == 'run_shell':
            # A model can write something that is not JSON.
            with suppress(ValueError, AssertionError):
                command: object = part.args_as_dict().get('command')
                if isinstance(command, str):
                    yield command


def _reject_handler(agent: AbstractAgent[Any, Any]) -> None:
    # Attack: the capability of a run replaces the agent's, so stricter rules of the agent would not hold.
    for each in capabilities_of(agent):
        if not isinstance(each, DeferredToolHandler):
            continue
        kind = '`Approvals`' if isinstance(each, Approvals) else 'a `deferred_tool_handler`'
        raise AssistantError(
            f'the agent has {kind} of its own, and `tool-approval run` asks with its own rules and prompt; '
            'name an agent that is built without them'
        )


READ_ONLY = 'Read-only file system'
"""English text of the error `EROFS` in the output of programs."""

RESULT = (
    'The OS sandbox does not let commands make, rename or delete files directly in {}. Commands can change '
    'existing files, and create files in subfolders. The file tools have no such limit.'
)
"""Note for the model and the user. The result of a failed command gets this note if the output contains `READ_ONLY`."""


def limits_of(workspace: Workspace) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the notes of a workspace, and a mapping from error texts in a command's output to notes that explain them.

    The mapping has an entry only if commands cannot create files at the top of the working directory.
    """
    is_frozen = any(note.startswith(f'{FROZEN} {workspace.directory} while ') for note in workspace.notes)
    return workspace.notes, {READ_ONLY: RESULT.format(workspace.directory)} if is_frozen else {}


def load_agent(place: str, *, directory: Path) -> AbstractAgent[Any, Any]:
    """Import a module as `python -m` does, searching `directory` first, and return the agent in it.

    `place` has the form `module:name`, such as `assistants.mail:agent`.

    Raises:
        AssistantError: The module or the name does not exist, the import fails, or the object is not an agent.
    """
    module_name, _, name = place.partition(':')
    if not name.isidentifier() or not all(part.isidentifier() for part in module_name.split('.')):
        raise AssistantError(f'{place!r} does not name an agent; write it as `module:name`')
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{module_name}.'.startswith(f'{error.name}.'):
            raise AssistantError(f'importing {module_name!r} failed: there is no module {error.name!r}') from error
        raise AssistantError(
            f'there is no module {module_name!r} in {str(directory)!r} or on the import path'
        ) from None
    except Exception as error:  # the user's own code may raise anything
        raise AssistantError(f'importing {module_name!r} failed with {type(error).__name__}: {error}') from error
    found: object = getattr(module, name, None)
    if not isinstance(found, AbstractAgent):
        kind = 'undefined' if found is None else f'a {type(found).__name__}'
        raise AssistantError(f'{place!r} is {kind}, not an agent')
    return cast('AbstractAgent[Any, Any]', found)

"""Let the approver edit the arguments of a call, and use the tool's presenter to show the changed call."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from tool_approval.answering import (
    NotOffered,
    UnreadableArguments,
    draft_of,
    is_changed,
    with_arguments,
)
from tool_approval.core.canonical import canonical_json, copied
from tool_approval.core.errors import ApprovalError, NotCanonicalError
from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import call_sync_or_async
from tool_approval.display import escape_line

from .dialogue import Dialogue
from .editing import EditorFailed, as_text, edit, editor_of, is_yaml, read_text, read_value
from .layout import fitted
from .line import LONGEST_LINE, read_line
from .tty import Terminal, Withdrawn

PATIENCE_S = 10.0
"""Maximum seconds to wait for a presenter. If the presenter takes longer, the approver sees the plain arguments."""

POLL_S = 0.02
"""Seconds between checks of whether the presenter has finished."""

NOT_SAID = 'The tool cannot show the changed call.'

Present = Callable[[ApprovalRequest, ApprovalRequest], ApprovalRequest]
"""Function that takes the original and the changed request, and returns the changed request with its presentation."""


class Presenting:
    """Calls the controller's presenters from the thread that asks. Create the object in the event loop's thread."""

    def __init__(self, presenters: Mapping[str, Presenter], terminal: Terminal) -> None:
        """Set the presenter for each tool. If a request is withdrawn, `terminal` ends the wait for its presentation."""
        self._presenters = presenters
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()

    def __call__(self, before: ApprovalRequest, changed: ApprovalRequest) -> ApprovalRequest:
        """Add a presentation to the changed request. If the presenter fails or takes too long, the presentation
        describes the problem.

        Raises:
            Withdrawn: The answer is no longer needed.
        """
        presenter = self._presenters.get(changed.tool_name)
        problem = NOT_SAID
        try:
            presentation = None if presenter is None else self._ask(presenter, changed)
            if isinstance(presentation, ApprovalPresentation):
                return changed.model_copy(update={'presentation': presentation})
        except Withdrawn:
            raise
        except (PermissionError, ApprovalError) as error:  # their messages are safe to show
            problem = f'The changed call cannot be shown: {error}'
        except Exception as error:  # noqa: BLE001 - a presenter may fail in any way, and quote hidden values
            problem = f'The changed call cannot be shown ({type(error).__name__}).'
        return changed.model_copy(update={'presentation': _replacement(before, problem)})

    def _ask(self, presenter: Presenter, changed: ApprovalRequest) -> object:
        # The presenter gets a copy, because it must not change the arguments that will be approved.
        given = changed.model_copy(update={'args': copied(changed.args), 'bound_to': copied(changed.bound_to)})
        asked = asyncio.run_coroutine_threadsafe(call_sync_or_async(presenter, given), self._loop)
        until = time.monotonic() + PATIENCE_S
        try:
            while not asked.done():
                self._terminal.pause(POLL_S)
                if time.monotonic() > until:
                    raise TimeoutError
        finally:
            asked.cancel()
        return asked.result()


def _replacement(before: ApprovalRequest, problem: str) -> ApprovalPresentation:
    """Present the problem and the `bound_to` values, which the approver's edit does not change."""
    lines = [problem]
    for name, value in before.bound_to.items():
        if isinstance(value, Mapping):
            value = ', '.join(map(str, cast('Mapping[Any, Any]', value)))
        elif name == 'cwd':
            continue
        else:
            value = repr(value)
        lines.append(f'The approval stays bound to the same {name}: {value}')
    folder = before.bound_to.get('cwd')
    if folder is None and before.presentation is not None:
        folder = before.presentation.metadata.get('cwd')
    facts = {} if folder is None else {'cwd': folder}
    return ApprovalPresentation(type='text', content='\n'.join(lines), metadata=facts)


def change(
    dialogue: Dialogue,
    request: ApprovalRequest,
    asked: ApprovalRequest,
    *,
    present: Present,
    environment: Mapping[str, str],
) -> tuple[ApprovalRequest, str]:
    """Let the approver edit the arguments in an editor or, if no editor is set, one argument after another.

    Args:
        dialogue: Dialogue that shows the request. The caller must redraw the dialogue afterwards.
        request: The original request.
        asked: The request with the approver's earlier changes, or the original request.
        present: Function that adds the presentation to the changed request.
        environment: Environment variables that name the editor.

    Returns: `asked` if the approver changed nothing, `request` if the approver restored the original arguments, and
        otherwise the changed request. The second value is a line to show.
    """
    editor = editor_of(environment)
    draft = draft_of(asked)
    try:
        before = canonical_json(draft)
        edited = _one_by_one(dialogue, draft) if editor is None else _in_editor(dialogue, asked, draft, editor)
        if edited is None or canonical_json(edited) == before:
            return asked, 'Nothing was changed.'
    except EditorFailed as error:
        return asked, escape_line(f'Nothing was changed: {error}.')
    except (RecursionError, NotCanonicalError):
        return asked, 'These arguments cannot be edited.'
    if not is_changed(request, edited):
        return request, 'The arguments are unchanged.'
    dialogue.show(question='Waiting for the tool to show the changed call. ')
    shown = present(request, with_arguments(request, edited))
    dialogue.show(question='')
    return shown, 'You have changed the call. Nothing is approved yet.'


def _in_editor(
    dialogue: Dialogue, request: ApprovalRequest, args: dict[str, Any], editor: list[str]
) -> dict[str, Any] | None:
    as_yaml = is_yaml(args)
    text = as_text(request.tool_name, args)
    while True:
        dialogue.show(question='Waiting for the editor to end. ')
        try:
            text = edit(dialogue.terminal, editor, text, suffix='.yaml' if as_yaml else '.json')
        finally:
            dialogue.leave()
        try:
            edited = read_text(text, as_yaml=as_yaml)
            with_arguments(request, edited or {})  # raises for an argument that is not shown
            return edited
        except NotOffered as error:
            problem = escape_line(f'The arguments are invalid: {error}.')
            if dialogue.choose([problem], 'Press e to edit again; Esc discards the text. ', ['e']) is None:
                return None


def _one_by_one(dialogue: Dialogue, args: Mapping[str, Any]) -> dict[str, Any] | None:
    edited = dict(args)
    for number, (name, value) in enumerate(edited.items(), start=1):
        hint = (
            f'Argument {number} of {len(edited)}, as JSON. Enter accepts it; Esc goes back. '
            'Set $EDITOR to use an editor.'
        )
        text = json.dumps(value, ensure_ascii=True)
        if len(text) > LONGEST_LINE:
            continue
        while True:
            dialogue.show(hint, question='')
            prompt = f'{fitted(escape_line(name), 16)}: '
            line = read_line(dialogue.terminal, dialogue.keyboard, prompt, text=text)
            if line is None:
                return None
            try:
                edited[name] = read_value(line)
                break
            except UnreadableArguments as error:
                hint, text = escape_line(f'Not accepted: {error}.'), line
    return edited

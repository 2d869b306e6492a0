"""Lets a person change the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalRequest
from tool_approval.display import escape_line

from .area import fitted
from .dialogue import Dialogue
from .editing import UnreadableEdit, as_text, changed, editable, is_yaml, read_text, read_value, value_text
from .editor import EditorFailed, edit, editor_of
from .line import LONGEST_LINE, read_line
from .presenting import Present

UNCHANGED = 'Nothing was changed.'


def change(
    dialogue: Dialogue,
    request: ApprovalRequest,
    asked: ApprovalRequest,
    *,
    present: Present,
    environment: Mapping[str, str],
) -> tuple[ApprovalRequest, str]:
    """Let the arguments be changed, in the person's editor or, where none is named, one by one.

    Args:
        dialogue: Where the request was drawn; it has to be drawn again.
        request: As it was made.
        asked: As it was changed before, or the same.
        present: Makes what is shown of the changed call.
        environment: Names the editor.

    Returns:
        What to ask about now: a changed request, which nobody has approved yet, `request` where no change is left, or
        `asked` where the person went back; and a line to show.
    """
    editor = editor_of(environment)
    try:
        unchanged = canonical_json(editable(asked))
        edited, hint = _one_by_one(dialogue, asked) if editor is None else _in_editor(dialogue, asked, editor)
        if edited is None or canonical_json(edited) == unchanged:
            return asked, hint or UNCHANGED
    except (RecursionError, NotCanonicalError):
        return asked, 'These arguments cannot be edited.'
    if canonical_json(edited) == canonical_json(editable(request)):
        return request, 'The arguments are as they were.'
    dialogue.area.show(question='Waiting for the tool to show the changed call. ')
    shown = present(request, changed(request, edited))
    dialogue.area.show(question='')
    return shown, 'You have changed the call. Nothing is approved yet.'


def _in_editor(dialogue: Dialogue, request: ApprovalRequest, editor: list[str]) -> tuple[dict[str, Any] | None, str]:
    args = editable(request)
    as_yaml = is_yaml(args)
    text = as_text(request.tool_name, args)
    while True:
        try:
            dialogue.area.show(question='Waiting for the editor to end. ')
            try:
                text = edit(dialogue.terminal, editor, text, suffix='.yaml' if as_yaml else '.json')
            finally:
                dialogue.area.leave()
            return read_text(text, as_yaml=as_yaml), ''
        except EditorFailed as error:
            return None, escape_line(f'Nothing was changed: {error}.')
        except UnreadableEdit as error:
            problem = escape_line(f'That cannot be used: {error}.')
            if dialogue.choose([problem], 'Press e to edit it again; Esc drops it. ', ['e']) is None:
                return None, UNCHANGED


def _one_by_one(dialogue: Dialogue, request: ApprovalRequest) -> tuple[dict[str, Any] | None, str]:
    edited = editable(request)
    for number, (name, value) in enumerate(edited.items(), start=1):
        hint = f'Argument {number} of {len(edited)}, as JSON. Enter takes it; Esc goes back. Set $EDITOR for an editor.'
        text = value_text(value)
        if len(text) > LONGEST_LINE:
            continue
        while True:
            dialogue.area.show(hint, question='')
            prompt = f'{fitted(escape_line(name), 16)}: '
            line = read_line(dialogue.terminal, dialogue.keyboard, prompt, text=text)
            if line is None:
                return None, UNCHANGED
            try:
                edited[name] = read_value(line)
                break
            except UnreadableEdit as error:
                hint, text = escape_line(f'Not taken: {error}.'), line
    return edited, ''

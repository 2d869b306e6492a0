"""What the model is told in a tool's result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import ToolMessage, convert_to_messages
from langgraph.types import Command

from tool_approval.core.canonical import canonical_json


def refusal(reason: str, *, name: str, call_id: str) -> ToolMessage:
    """The result of a call that did not run."""
    return ToolMessage(content=reason, name=name, tool_call_id=call_id, status='error')


def with_notice(result: object, args: Mapping[str, Any], *, call_id: str | None) -> Any:
    """A tool's result that also tells the model which arguments it really ran with.

    Args:
        result: What the tool returned: a text, the message that answers the call, a graph command that adds this
            message, or a list of these. Anything else goes to code that expects just its type, and stays as it is.
        args: The arguments.
        call_id: The id of the call; `None` if code made it.
    """
    notice = f'[The approver changed the arguments of this call. It ran with: {canonical_json(args)}]'
    return f'{result}\n\n{notice}' if isinstance(result, str) else _noted(result, notice, call_id)


def _noted(result: object, notice: str, call_id: str | None) -> object:
    match result:
        case ToolMessage(tool_call_id=answered) if answered == call_id:
            content: Any = result.content
            told = (
                f'{content}\n\n{notice}' if isinstance(content, str) else [*content, {'type': 'text', 'text': notice}]
            )
            return result.model_copy(update={'content': told})
        case Command(update={'messages': messages}):
            update = cast('Mapping[str, Any]', result.update)
            added = [_noted(message, notice, call_id) for message in convert_to_messages(messages)]
            return replace(result, update={**update, 'messages': added})
        case list():
            return [_noted(each, notice, call_id) for each in cast('list[object]', result)]
        case _:
            return result

"""Histories and runs in a form in which equal information is equal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo
from pydantic_ai_deferred.toolset import SKIPPED

if TYPE_CHECKING:
    from .world import Execution, Question, World


@dataclass(frozen=True)
class Turn:
    """A response of the model, or everything it is given between two responses, however it is split up."""

    said: str = ''
    """The text of a response."""
    calls: tuple[tuple[str, str, Any], ...] = ()
    """The calls of a response: id, tool, arguments."""
    results: dict[str, list[dict[str, Any]]] | None = None
    """The answers to calls by id, each with everything it says; the order across calls does not matter."""
    others: tuple[str, ...] = ()
    """Everything else the model is given, in any order."""


@dataclass(frozen=True)
class View:
    """One request to the model."""

    turns: tuple[Turn, ...]
    """The history."""
    offer: tuple[Any, ...]
    """What else the model is told: instructions, tools, ways to end."""


@dataclass(frozen=True)
class Transcript:
    """A conversation that was run to its end."""

    views: tuple[View, ...]
    """What the model was given, request by request."""
    executions: tuple[Execution, ...]
    """Each execution of a tool, sorted."""
    questions: tuple[Question, ...]
    """What was asked."""
    output: Any
    """The output."""
    turns: tuple[Turn, ...]
    """The history at the end."""

    def closed(self) -> Transcript:
        """The same with the calls answered that were left open at the end, as an inline run answers them."""
        has_results = self.turns[-1].results is not None
        response, last = self.turns[-2:] if has_results else (self.turns[-1], Turn(results={}))
        results = dict(last.results or {})
        open_calls = [(tool_call_id, tool) for tool_call_id, tool, _ in response.calls if tool_call_id not in results]
        if not open_calls:
            return self
        results.update({tool_call_id: [_closing(tool_call_id, tool)] for tool_call_id, tool in open_calls})
        before = self.turns[:-1] if has_results else self.turns
        return replace(self, turns=(*before, replace(last, results=results)))


def transcribe(world: World, output: Any, messages: Sequence[ModelMessage]) -> Transcript:
    """What was written down in `world`, and how the run ended."""
    return Transcript(
        views=tuple(world.views),
        executions=tuple(sorted(world.executions, key=repr)),
        questions=tuple(world.questions),
        output=output,
        turns=turns(messages),
    )


def differences(expected: Transcript, found: Transcript) -> list[str]:
    """Where two transcripts differ, each place with both sides; empty where they agree."""
    places: list[str] = []
    for name in ('views', 'executions', 'questions', 'turns'):
        pairs = zip_longest(getattr(expected, name), getattr(found, name))
        places += [
            f'{name}[{index}]\nexpected {one}\nfound    {other}'
            for index, (one, other) in enumerate(pairs)
            if one != other
        ]
    if expected.output != found.output:
        places.append(f'output\nexpected {expected.output}\nfound    {found.output}')
    return places


def view(messages: Sequence[ModelMessage], info: AgentInfo) -> View:
    """A request to the model. How a tool is declared is left out: no model is told."""
    tools = [(tool.name, tool.description, tool.parameters_json_schema) for tool in info.function_tools]
    outputs = [(tool.name, tool.description, tool.parameters_json_schema) for tool in info.output_tools]
    return View(turns(messages), (info.instructions, info.allow_text_output, tools, outputs))


def turns(messages: Iterable[ModelMessage]) -> tuple[Turn, ...]:
    """A history without what differs between runs: ids of runs, times, and how requests are grouped."""
    found: list[Turn] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = tuple((part.tool_call_id, part.tool_name, _arguments(part)) for part in message.tool_calls)
            found.append(Turn(said=message.text or '', calls=calls))
            continue
        if not found or found[-1].results is None:
            found.append(Turn(results={}))
        results = dict(found[-1].results or {})
        others = list(found[-1].others)
        for content in map(_content, message.parts):
            if content.get('tool_name'):
                results[content['tool_call_id']] = [*results.get(content['tool_call_id'], ()), content]
            else:
                # Older hosts give feedback on an output without a call an id, at random.
                others.append(repr({key: value for key, value in content.items() if key != 'tool_call_id'}))
        found[-1] = Turn(results=results, others=tuple(sorted(others)))
    return tuple(found)


def _content(part: ModelRequestPart) -> dict[str, Any]:
    content = {
        each.name: getattr(part, each.name)
        for each in fields(part)
        if each.name != 'timestamp' and not each.name.startswith('_')
    }
    if content.get('retry') is not None:
        # Not how much of the budget is used: a resumed run starts it anew. No model is sent either.
        content['retry'] = content['retry'].cause
    return content


def _arguments(part: ToolCallPart) -> Any:
    # A streamed call has JSON where the same call in one piece has a dictionary.
    if not part.args:
        return {}
    try:
        return json.loads(part.args) if isinstance(part.args, str) else part.args
    except ValueError:
        return part.args


def _closing(tool_call_id: str, tool: str) -> dict[str, Any]:
    return _content(ToolReturnPart(tool_name=tool, content=SKIPPED, tool_call_id=tool_call_id))

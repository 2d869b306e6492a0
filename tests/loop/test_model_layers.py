"""A handler leaves the run's model alone: it is chosen, resolved and traced once, with a handler and without."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, NoOpTracerProvider, Span, Tracer
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai_deferred import Agent, DeferredToolHandler, install

from .scripted import Recorder, call, scripted

selects_models = pytest.mark.skipif(
    not hasattr(AbstractCapability, 'get_model'), reason='capabilities select models on newer hosts only'
)


class Spans(NoOpTracer):
    """A tracer that keeps the names of the spans."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start_span(self, name: str, *args: Any, **keywords: Any) -> Span:
        self.names.append(name)
        return INVALID_SPAN

    @contextmanager
    def start_as_current_span(self, name: str, *args: Any, **keywords: Any) -> Iterator[Span]:  # type: ignore[override]
        self.names.append(name)
        yield INVALID_SPAN


class Provider(NoOpTracerProvider):
    def __init__(self) -> None:
        self.spans = Spans()

    def get_tracer(self, *args: Any, **keywords: Any) -> Tracer:
        return self.spans


class Chooses(AbstractCapability[Any]):
    """Gives the model for each step by name, and says what the name means."""

    def __init__(self, model: Model, *, selected_by: str) -> None:
        self.model = model
        self.selected_by = selected_by
        self.selected: list[int] = []
        self.resolved: list[str] = []

    def get_model(self) -> Any:
        return self._select if self.selected_by == 'selector' else 'test-alias'

    def _select(self, ctx: Any) -> str:
        self.selected.append(ctx.run_step)
        return 'test-alias'

    async def resolve_model_id(self, ctx: Any, *, model_id: str) -> Model | None:
        self.resolved.append(model_id)
        return self.model


def ours(*args: Any, handler: Any, **keywords: Any) -> Any:
    return Agent(*args, deferred_tool_handler=handler, **keywords)


def capability(*args: Any, handler: Any, capabilities: Any = (), **keywords: Any) -> Any:
    own = [] if handler is None else [DeferredToolHandler(handler)]
    return pydantic_ai.Agent(*args, capabilities=[*capabilities, *own], **keywords)


def run_keyword(*args: Any, handler: Any, **keywords: Any) -> Any:
    return Running(Agent(*args, **keywords), handler)


def installed(*args: Any, handler: Any, **keywords: Any) -> Any:
    return Installed(pydantic_ai.Agent(*args, **keywords), handler)


class Running:
    """An agent whose runs are given the handler."""

    def __init__(self, agent: Any, handler: Any) -> None:
        self.agent = agent
        self.keywords = {'deferred_tool_handler': handler}

    def run_sync(self, prompt: str) -> Any:
        return self.agent.run_sync(prompt, **self.keywords)


class Installed(Running):
    def run_sync(self, prompt: str) -> Any:
        with install():
            return super().run_sync(prompt)


WAYS = pytest.mark.parametrize('make', [ours, run_keyword, capability, installed])
HANDLERS = pytest.mark.parametrize('handler', [Recorder(), None], ids=['handler', 'none'])


@WAYS
@HANDLERS
def test_each_request_to_an_instrumented_model_has_one_span(make: Any, handler: Any):
    provider = Provider()
    model = InstrumentedModel(scripted([call('look', '1')], 'done'), InstrumentationSettings(tracer_provider=provider))

    make(model, handler=handler, tools=[look]).run_sync('go')

    assert [name.split()[0] for name in provider.spans.names if name.startswith('chat')] == ['chat', 'chat']


@selects_models
@WAYS
@HANDLERS
def test_a_name_is_resolved_once_a_run(make: Any, handler: Any):
    chooses = Chooses(scripted([call('look', '1')], 'done'), selected_by='name')

    make(handler=handler, capabilities=[chooses], tools=[look]).run_sync('go')

    assert chooses.resolved == ['test-alias']


@selects_models
@WAYS
@HANDLERS
def test_a_model_is_selected_once_a_step(make: Any, handler: Any):
    chooses = Chooses(scripted([call('look', '1')], 'done'), selected_by='selector')

    make(handler=handler, capabilities=[chooses], tools=[look]).run_sync('go')

    assert chooses.selected == [1, 2]


def look() -> str:
    """Look."""
    return 'seen'


@selects_models
def test_an_agent_from_a_file_selects_its_model_as_often_as_one_from_a_spec(tmp_path: Path):
    file = tmp_path / 'agent.json'
    file.write_text('{"model": "test", "name": "filed"}')
    chosen: list[list[int]] = []

    for make in (partial(Agent.from_spec, {'model': 'test', 'name': 'specified'}), partial(Agent.from_file, file)):
        chooses = Chooses(scripted([call('delete', '1')], 'done'), selected_by='selector')
        agent: Any = make(capabilities=[chooses], deferred_tool_handler=Recorder())
        agent.tool_plain(name='delete', requires_approval=True)(lambda: 'deleted')
        agent.run_sync('go')
        chosen.append(chooses.selected)

    assert chosen[0] == chosen[1]

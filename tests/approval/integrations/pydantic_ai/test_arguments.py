"""What the model gave for a call is found by the call's id, in a response of any size."""

import gc
from typing import Any

import pytest
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from tool_approval.integrations.pydantic_ai import arguments
from tool_approval.integrations.pydantic_ai.arguments import given_arguments, made_call

from tests.loop.scripted import scripted

SIZES = (2, 1000)


def ctx_of(*messages: ModelMessage) -> RunContext[None]:
    return RunContext(deps=None, model=scripted(), usage=RunUsage(), messages=list(messages))


def response_of(size: int) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart('touch', {'number': n}, str(n)) for n in range(size)])


@pytest.mark.parametrize('size', SIZES)
def test_a_call_of_the_last_response_is_found_by_its_id(size: int):
    ctx = ctx_of(response_of(3), response_of(size))

    assert given_arguments(made_call(ctx, '1')) == {'number': 1}
    assert given_arguments(made_call(ctx, str(size - 1))) == {'number': size - 1}
    assert given_arguments(made_call(ctx, 'unknown')) is None
    assert given_arguments(made_call(ctx, None)) is None


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('position', [0, -1])
def test_id_shared_by_several_calls_finds_no_arguments(size: int, position: int):
    response = response_of(size)
    response.parts = [
        *response.parts,
        ToolCallPart('touch', {'number': -1}, response.tool_calls[position].tool_call_id),
    ]

    assert given_arguments(made_call(ctx_of(response), response.tool_calls[position].tool_call_id)) is None


@pytest.mark.parametrize('size', SIZES)
def test_a_response_that_has_changed_is_read_again(size: int):
    response = response_of(size)
    ctx = ctx_of(response)
    assert given_arguments(made_call(ctx, '1')) == {'number': 1}

    parts: list[Any] = [ToolCallPart('touch', {'number': 7}, '1'), *response.parts[1:]]
    parts[1] = TextPart('in the place of the call')
    response.parts = parts
    assert given_arguments(made_call(ctx, '1')) == {'number': 7}

    response.parts = [*parts, ToolCallPart('touch', {'number': 8}, 'added')]
    assert given_arguments(made_call(ctx, 'added')) == {'number': 8}


def test_a_large_response_is_not_searched_for_each_call():
    class Parts(list[Any]):
        searched = 0

        def __iter__(self):
            self.searched += 1
            return super().__iter__()

    response = response_of(1000)
    response.parts = parts = Parts(response.parts)
    ctx = ctx_of(response)

    assert all(given_arguments(made_call(ctx, str(n))) == {'number': n} for n in range(1000))
    assert parts.searched == 1


def test_nothing_is_kept_of_a_response_that_is_gone():
    before = len(arguments._indexed)  # pyright: ignore[reportPrivateUsage]
    ctx = ctx_of(response_of(1000))
    assert given_arguments(made_call(ctx, '1')) is not None
    assert len(arguments._indexed) == before + 1  # pyright: ignore[reportPrivateUsage]

    del ctx
    gc.collect()
    assert len(arguments._indexed) == before  # pyright: ignore[reportPrivateUsage]

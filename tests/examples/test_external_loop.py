import pytest
from pydantic_ai import ModelResponse
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel


def test_prompt_is_in_the_history_once(load, finish):
    example = load('external_loop')

    result = finish(example.run_with_deferred(example.agent, 'Publish both.', example.decide))

    parts = [part for message in result.all_messages() for part in message.parts]
    assert [part.content for part in parts if isinstance(part, UserPromptPart)] == ['Publish both.']
    assert [(part.content, part.outcome) for part in parts if isinstance(part, ToolReturnPart)] == [
        ('published home', 'success'),
        ('One at a time.', 'denied'),
        ('published news', 'success'),
    ]


@pytest.mark.parametrize('output_type', [int, [int, str]])
def test_output_type_of_the_agent_is_kept(load, finish, output_type):
    example = load('external_loop')

    def plan(messages, info):
        if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {'response': 7})])
        return ModelResponse(parts=[ToolCallPart('publish', {'page': 'home'})])

    agent = example.Agent(FunctionModel(plan), output_type=output_type)
    agent.tool_plain(example.publish, requires_approval=True)

    result = finish(example.run_with_deferred(agent, 'go', example.decide))

    assert result.output == 7


def test_limits_count_over_all_rounds(load, finish):
    example = load('external_loop')

    def insist(messages, info):
        return ModelResponse(parts=[TextPart('again'), ToolCallPart('publish', {'page': 'home'})])

    agent = example.Agent(FunctionModel(insist))
    agent.tool_plain(example.publish, requires_approval=True)

    with pytest.raises(UsageLimitExceeded, match='request_limit of 50'):
        finish(example.run_with_deferred(agent, 'go', example.decide))

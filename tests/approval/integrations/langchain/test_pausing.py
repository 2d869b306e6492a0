"""Without a UI, a run pauses at its checkpoint, and goes on elsewhere with a reviewer's answers."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import SecretStr
from tool_approval.core.calls import denied_because
from tool_approval.core.gate import CHANGED, DENIED
from tool_approval.integrations.langchain.pausing import call_digest, read_answers

from tests.approval.parts import ListSink
from tool_approval import ApprovalController

from .scripted import Altering, Files, Runner, call, results, scripted

CONFIG = {'configurable': {'thread_id': 't'}}
KEY = b'k' * 32
CALLS = [call('read', '1', path='a'), call('write', '2', path='b'), call('read', '3', path='c')]
APPROVE = {'type': 'approve'}


def edit(name: str = 'read', **args: Any) -> dict[str, Any]:
    return {'type': 'edit', 'edited_action': {'name': name, 'args': args}}


class Paused:
    """A run that pauses, and is resumed by a new agent with a new controller, as in another process."""

    def __init__(self, run: Runner, tools: Any, *calls: Any, policy: Any = None, **options: Any):
        self.run, self.tools, self.options = run, tools, options
        self.model, self.saver = scripted(calls or CALLS, 'done'), InMemorySaver()
        self.audit = ListSink()
        output = run.output(self.agent(policy=policy), CONFIG)
        self.interrupts = [each.value for each in output.get('__interrupt__', ())]
        self.messages = output['messages']

    def agent(self, key: bytes = KEY, policy: Any = None, tools: Any = None, **options: Any) -> Any:
        controller = ApprovalController(key=key, policy=policy, audit=self.audit)
        return self.run.agent(
            self.model, tools or self.tools, controller, checkpointer=self.saver, **{**self.options, **options}
        )

    def resume(self, *decisions: Any, **options: Any) -> list[Any]:
        resumed = Command(resume={'decisions': list(decisions)})
        return results(self.run.invoke(self.agent(**options), CONFIG, resumed))


def test_all_questions_of_a_response_are_one_interrupt_in_the_form_of_the_host(run: Runner, files: Files):
    paused = Paused(run, files.tools(), policy={'write': {'approval': 'none'}})

    assert files.ran == []
    assert paused.interrupts == snapshot(
        [
            {
                'action_requests': [
                    {'name': 'read', 'args': {'path': 'a'}, 'description': "read(path='a')"},
                    {'name': 'read', 'args': {'path': 'c'}, 'description': "read(path='c')"},
                ],
                'review_configs': [
                    {'action_name': 'read', 'allowed_decisions': ['approve', 'edit', 'reject']},
                    {'action_name': 'read', 'allowed_decisions': ['approve', 'edit', 'reject']},
                ],
            }
        ]
    )


def test_the_interrupt_has_the_form_of_the_hosts_own_middleware(run: Runner, files: Files):
    own = Paused(run, files.tools()).interrupts[0]
    agent = run.agent(
        scripted(CALLS, 'done'),
        files.tools(),
        ApprovalController('approve_all'),
        after=[HumanInTheLoopMiddleware({'read': True, 'write': True})],
        checkpointer=InMemorySaver(),
    )
    host = run.output(agent, CONFIG)['__interrupt__'][0].value

    assert own.keys() == host.keys()
    assert [each.keys() for each in own['action_requests']] == [each.keys() for each in host['action_requests']]
    assert [each.keys() for each in own['review_configs']] == [each.keys() for each in host['review_configs']]


def test_a_new_agent_goes_on_with_the_answers(run: Runner, files: Files):
    paused = Paused(run, files.tools())

    told = paused.resume(APPROVE, {'type': 'reject', 'message': 'Ask Kim.'}, edit(path='z'))

    assert sorted(files.ran) == ['read a', 'read z']
    assert [(name, status) for name, _, status in told] == [
        ('read', 'success'),
        ('write', 'error'),
        ('read', 'success'),
    ]
    assert told[1][1] == denied_because('Ask Kim.')
    assert 'ran with: {"path":"z"}' in told[2][1]
    assert sorted(entry['approved'] for entry in paused.audit.decisions()) == [False, True, True]
    assert paused.audit.outcomes() == ['executed', 'executed']
    decided = {entry['tool_call_id']: entry['digest'] for entry in paused.audit.decisions()}
    came = {entry['tool_call_id']: entry['digest'] for entry in paused.audit.entries if entry['event'] == 'outcome'}
    assert {each: decided[each] for each in came} == came


def test_a_reviewer_responds_in_the_place_of_a_tool_that_allows_it(run: Runner, files: Files):
    policy = {'read': {'approval': 'required', 'answers': ['respond']}}
    paused = Paused(run, files.tools(), CALLS[0], policy=policy)

    assert paused.interrupts[0]['review_configs'][0]['allowed_decisions'] == ['reject', 'respond']
    again = run.output(paused.agent(policy=policy), CONFIG, Command(resume={'decisions': [APPROVE]}))
    told = paused.resume({'type': 'respond', 'message': 'Nothing is in it.'}, policy=policy)

    description = again['__interrupt__'][0].value['action_requests'][0]['description']
    assert "a decision about 'read' must be of the type reject, respond" in description
    assert told == [('read', 'Nothing is in it.', 'success')]
    assert files.ran == []
    assert paused.audit.outcomes() == ['responded']


def test_a_rejection_without_a_message_has_the_usual_reason(run: Runner, files: Files):
    assert Paused(run, files.tools(), CALLS[0]).resume({'type': 'reject'}) == [('read', DENIED, 'error')]


def test_unchanged_arguments_are_an_approval(run: Runner, files: Files):
    told = Paused(run, files.tools(), CALLS[0]).resume(edit(path='a'))

    assert told == [('read', 'content of a', 'success')]


def test_secrets_are_not_in_the_interrupt_and_survive_an_edit(run: Runner):
    ran: list[Any] = []

    @tool
    def sign_in(user: str, password: SecretStr) -> str:
        """Sign in."""
        ran.append((user, password.get_secret_value()))
        return 'ok'

    paused = Paused(run, [sign_in], call('sign_in', '1', user='u', password='hunter2'))
    paused.resume(edit('sign_in', user='v', password='[hidden]'))

    assert 'hunter2' not in repr(paused.interrupts)
    assert ran == [('v', 'hunter2')]


@pytest.mark.parametrize('change', ['key', 'definition', 'policy', 'arguments'])
def test_an_answer_holds_only_for_the_call_that_was_shown(run: Runner, files: Files, change: str):
    paused = Paused(run, files.tools(), call('write', '1', path='a'))

    @tool
    def write(path: str, content: str = 'published') -> str:
        """Write a file, and publish it."""
        files.ran.append('published')
        return 'ok'

    class Meddler(Altering):
        def altered(self, request: Any) -> Any:
            return request.override(tool_call={**request.tool_call, 'args': {'path': '/etc/hosts'}})

    changes: dict[str, Any] = {
        'key': {'key': b'x' * 32},
        'definition': {'tools': [write]},
        'policy': {'policy': {'write': {'approval': 'blocked'}}},
        'arguments': {'before': [Meddler()]},
    }
    [(_, content, status)] = paused.resume(APPROVE, **changes[change])

    assert files.ran == []
    assert (content, status) == ("The tool 'write' is blocked by policy." if change == 'policy' else CHANGED, 'error')
    assert [entry.get('approved', False) for entry in paused.audit.entries] == [False]


def test_an_edit_that_does_not_fit_is_refused_with_the_reason(run: Runner, files: Files):
    told = Paused(run, files.tools(), CALLS[0]).resume(edit(path=5))

    assert files.ran == []
    assert told[0][1].startswith("The approver's arguments are invalid (the values do not match the schema")


def test_an_answer_is_used_for_its_own_response_only(run: Runner, files: Files):
    paused = Paused(run, files.tools(), CALLS[0])
    paused.model.responses.insert(1, paused.model.responses[0])

    output = run.output(paused.agent(), CONFIG, Command(resume={'decisions': [APPROVE]}))

    assert files.ran == ['read a']
    assert len(output['__interrupt__']) == 1


def test_calls_that_cannot_be_asked_about_are_refused_when_the_run_goes_on(run: Runner, files: Files):
    calls = [
        CALLS[0],
        call('write', '2', path=5),
        call('erase', '3'),
        call('read', '4', path='x'),
        call('read', '4', path='y'),
    ]
    paused = Paused(run, files.tools(), *calls)

    told = paused.resume(APPROVE)

    assert [len(each['action_requests']) for each in paused.interrupts] == [1]
    assert files.ran == ['read a']
    assert [status for _, _, status in told] == ['success', *['error'] * (len(told) - 1)]


def test_a_call_that_a_limit_dropped_is_not_asked_about(run: Runner, files: Files):
    paused = Paused(run, files.tools(), after=[ToolCallLimitMiddleware(run_limit=1)])

    assert [each['args'] for each in paused.interrupts[0]['action_requests']] == [{'path': 'a'}]
    paused.resume(APPROVE)
    assert files.ran == ['read a']


def test_before_a_hook_that_may_drop_calls_the_middleware_says_where_it_belongs(run: Runner, files: Files):
    with pytest.raises(ValueError, match='put it before ToolCallLimitMiddleware in the middleware list'):
        Paused(run, files.tools(), before=[ToolCallLimitMiddleware(run_limit=1)])

    assert files.ran == []


@pytest.mark.parametrize('mode', ['approve_all', 'strict'])
def test_other_modes_do_not_pause(run: Runner, files: Files, mode: str):
    agent = run.agent(scripted(CALLS, 'done'), files.tools(), ApprovalController(mode), checkpointer=InMemorySaver())

    assert '__interrupt__' not in run.output(agent, CONFIG)
    assert len(files.ran) == (3 if mode == 'approve_all' else 0)


QUESTION: Any = {
    'call_id': '1',
    'call': 'c',
    'digest': 'd',
    'action': {'name': 'read', 'args': {'path': 'a'}},
    'allowed': ['approve', 'edit', 'reject'],
}


@pytest.mark.parametrize(
    ('response', 'problem'),
    [
        pytest.param(None, 'a list of 1 `decisions`', id='nothing'),
        pytest.param({'decisions': []}, 'a list of 1 `decisions`', id='too few'),
        pytest.param({'decisions': [APPROVE, APPROVE]}, 'a list of 1 `decisions`', id='too many'),
        pytest.param({'decisions': APPROVE}, 'a list of 1 `decisions`', id='no list'),
        pytest.param({'decisions': ['approve']}, 'must be of the type approve, edit, reject', id='a text'),
        pytest.param({'decisions': [{'type': 'respond', 'message': 'x'}]}, 'must be of the type', id='not allowed'),
        pytest.param({'decisions': [edit('write', path='a')]}, 'with the same `name`', id='another tool'),
        pytest.param({'decisions': [{'type': 'edit'}]}, 'an `edited_action`', id='no action'),
        pytest.param(
            {'decisions': [{'type': 'edit', 'edited_action': {'name': 'read', 'args': []}}]}, '`args`', id='no args'
        ),
    ],
)
def test_a_response_of_another_form_is_an_error(response: Any, problem: str):
    with pytest.raises(ValueError, match=problem):
        read_answers(response, [QUESTION])


def test_after_a_response_of_another_form_the_run_pauses_again_with_the_reason(run: Runner, files: Files):
    paused = Paused(run, files.tools(), CALLS[0])

    again = run.output(paused.agent(), CONFIG, Command(resume={'decisions': []}))['__interrupt__'][0].value
    told = paused.resume(APPROVE)

    assert again['action_requests'][0]['description'].startswith(
        'The last response could not be used: the response must'
    )
    assert again['action_requests'][0]['args'] == {'path': 'a'}
    assert told == [('read', 'content of a', 'success')]


def test_a_call_without_a_canonical_form_has_no_digest():
    assert call_digest(call('read', '1', path='\ud800')) is None
    assert call_digest(call('read', '1', path='a')) != call_digest(call('read', '1', path='b'))

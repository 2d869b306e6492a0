"""What is found in the state of a run."""

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tool_approval.integrations.langchain.run_state import find_consent, find_offer, last_response

from .scripted import call

CONSENT = {'call': 'c', 'digest': 'd', 'args': {}, 'is_changed': False}


def response(message_id: str) -> AIMessage:
    return AIMessage('', id=message_id, tool_calls=[call('read', '1'), call('read', '2')])


def test_calls_of_the_last_response_that_nothing_has_answered_are_pending():
    last = response('b')
    messages = [response('a'), last, ToolMessage('ok', tool_call_id='1'), HumanMessage('and?')]

    message, pending = last_response(messages)

    assert message is last
    assert [made['id'] for made in pending] == ['2']


def test_without_a_response_nothing_is_pending():
    assert last_response([HumanMessage('go')]) == (None, [])


def test_a_consent_holds_for_the_response_it_was_given_for():
    state = {
        'messages': [response('a')],
        'tool_approval_consents': {'message_id': 'a', 'by_call': {'1': CONSENT}},
    }

    assert find_consent(state, '1') == CONSENT
    assert find_consent(state, '2') is None
    assert find_consent({**state, 'messages': [response('a'), response('b')]}, '1') is None
    assert find_consent({**state, 'messages': []}, '1') is None


def test_offer_is_empty_without_state():
    offer = find_offer({'messages': []})

    assert (offer.run_id, dict(offer.tools)) == (None, {})

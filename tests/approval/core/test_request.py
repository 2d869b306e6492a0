"""A request has the facts of one call, and shows no excluded value."""

import asyncio
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tool_approval.core.request import describe

from tool_approval import (
    ApprovalContext,
    ApprovalController,
    ApprovalPresentation,
    ApprovalRequest,
    LineageEntry,
    RememberOption,
    simple_approval_request,
)


def option(kind: str = 'directory', **payload: Any) -> RememberOption:
    return RememberOption(kind=kind, label='every file in notes/', payload=payload)


def test_request_needs_only_the_name_of_its_tool():
    request = ApprovalRequest(tool_name='now')

    assert request.model_dump() == {
        'tool_name': 'now',
        'args': {},
        'description': 'now()',
        'described_by': None,
        'payload': {},
        'presentation': None,
        'group_id': None,
        'tool_call_id': None,
        'run_id': None,
        'session_id': None,
        'reason': None,
        'remember_options': (),
        'metadata': {},
        'lineage': (),
        'bound_to': {},
        'hides_arguments': False,
        'answers': None,
        'args_schema': None,
        'used': None,
        'rejected_edit': None,
        'votes': None,
        'review': None,
    }


def test_full_request_round_trips_through_json():
    request = ApprovalRequest(
        tool_name='write',
        args={'path': 'a', 'content': ['b', 1, 1.5, None, {'c': True}]},
        description='Write to a',
        payload={'path': 'a'},
        presentation=ApprovalPresentation(type='diff', content='+b'),
        group_id='batch',
        tool_call_id='call',
        run_id='run',
        session_id='session',
        reason='the path is outside',
        remember_options=(option(directory='notes'),),
        metadata={'toolset_id': 'files'},
        lineage=(LineageEntry(agent_name=None, run_id='outer', tool_name='delegate', tool_call_id='0'),),
        bound_to={'cwd': 'notes'},
    )

    assert ApprovalRequest.model_validate_json(request.model_dump_json()) == request


def test_context_carries_facts_of_the_framework_as_metadata_only():
    context = ApprovalContext(tool_name='now', args={}, metadata={'run_id': '1', 'caller': 'clerk'})

    assert context.metadata['caller'] == 'clerk'
    with pytest.raises(ValidationError):
        ApprovalContext(tool_name='now', args={}, run_id='1')


@pytest.mark.parametrize('kind', [ApprovalRequest, ApprovalContext])
def test_requests_and_contexts_cannot_be_changed(kind):
    made = kind(tool_name='now', args={})

    with pytest.raises(ValidationError):
        made.tool_name = 'rm'


def test_the_payload_is_all_arguments_unless_given():
    args = {'path': 'a', 'content': 'b'}

    assert ApprovalRequest(tool_name='write', args=args).payload == args
    assert ApprovalRequest(tool_name='write', args=args, payload={}).payload == {}


def test_request_keeps_a_copy_of_its_arguments():
    args = {'path': 'a'}

    request = ApprovalRequest(tool_name='write', args=args)
    args['path'] = 'b'

    assert request.args == {'path': 'a'}
    assert request.payload == {'path': 'a'}


@pytest.mark.parametrize('args', ['{"path": "a"}', [('path', 'a')], None, {1: 'a'}])
def test_arguments_that_are_not_a_mapping_of_names_are_refused(args):
    with pytest.raises(ValidationError):
        ApprovalRequest(tool_name='write', args=args)


def test_automatic_description_is_the_call():
    request = ApprovalRequest(tool_name='write', args={'path': 'a', 'force': True, 'lines': [1]})

    assert request.description == "write(path='a', force=True, lines=[1])"


def test_the_automatic_description_is_one_line_of_limited_length():
    text = describe('write', {'content': 'a\n' * 5000, 'path': 'a'})

    assert text.startswith("write(content='a\\na")
    assert text.endswith('...)')
    assert len(text) == 200


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize('depth', [100, 700])
def test_description_without_a_limit_is_complete(depth):
    args = {'value': nested(depth), 'pair': ('a' * 1000, {'b': 1})}

    assert describe('write', args, max_chars=sys.maxsize) == f'write(value={nested(depth)!r}, pair={args["pair"]!r})'


@pytest.mark.parametrize(
    'value', [[['a'] * 300] * 3, {f'k{n}': [n] for n in range(300)}, ([10**3999] * 3, 'b'), [['a' * 300, 'b']]]
)
def test_a_short_description_is_the_beginning_of_the_long_one(value):
    short, long = (describe('t', {'x': value}, max_chars=most) for most in (200, sys.maxsize))

    assert short == f'{long[:196]}...)'


@pytest.mark.parametrize(
    'value', [nested(100_000), 10**5000, float('nan'), '\ud800', {1}], ids=['deep', 'huge', 'nan', 'surrogate', 'set']
)
def test_arguments_that_cannot_be_judged_are_denied_without_a_crash(value):
    controller = ApprovalController(mode='approve_all')

    request = ApprovalRequest(tool_name='write', args={'value': value})
    decision = asyncio.run(controller.request_approval(request))

    assert not decision.approved
    assert decision.decided_by == ('arguments',)
    assert decision.note is not None
    assert "The arguments of 'write' are invalid" in decision.note


def test_simple_request_leaves_out_excluded_keys():
    request = simple_approval_request('mail', {'to': 'ada', 'body': 'secret'}, exclude_keys={'body'})

    assert request.args == {'to': 'ada', 'body': 'secret'}
    assert request.payload == {'to': 'ada'}


def test_simple_request_takes_a_description():
    request = simple_approval_request('mail', {'to': 'ada'}, description='Write to Ada')

    assert request.description == 'Write to Ada'
    assert request.payload == {'to': 'ada'}


@pytest.mark.parametrize('exclude_keys', [{'body'}, ['body'], ('body',), 'body', {'body': 1}.keys()])
def test_automatic_description_shows_no_excluded_value(exclude_keys):
    request = simple_approval_request('mail', {'to': 'ada', 'body': 'hunter2', 'b': 1}, exclude_keys=exclude_keys)

    assert request.description == "mail(to='ada', b=1)"
    assert request.payload == {'to': 'ada', 'b': 1}


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from('abcd'), st.text('xyz', min_size=4, max_size=6), max_size=4),
    st.sets(st.sampled_from('abcd')),
)
def test_no_excluded_value_is_in_payload_or_description(args, excluded):
    args = {key: f'{key}-{value}' for key, value in args.items()}

    request = simple_approval_request('tool', args, exclude_keys=excluded)

    for key, value in args.items():
        assert (value in request.description) == (key not in excluded)
        assert (key in request.payload) == (key not in excluded)


def test_request_has_the_name_that_the_model_calls_the_tool_by():
    def inner() -> None: ...

    request = simple_approval_request('renamed_by_the_toolset', {})

    assert inner.__name__ not in (request.tool_name, request.description)
    assert request.tool_name == 'renamed_by_the_toolset'


@pytest.mark.parametrize('kind', ['exact', ''])
def test_wide_option_is_never_of_the_exact_kind(kind):
    with pytest.raises(ValidationError, match='a `RememberOption` has an invalid `kind`: '):
        option(kind)


def test_two_options_of_one_kind_are_refused():
    narrow, wide = option(directory='notes/drafts'), option(directory='/')

    with pytest.raises(ValidationError, match='have the same kind'):
        ApprovalRequest(tool_name='write', remember_options=(narrow, wide))


def test_a_request_of_an_unknown_field_is_refused():
    with pytest.raises(ValidationError):
        ApprovalRequest(tool_name='write', approved=True)


def test_changed_metadata_of_a_request_does_not_change_the_decision():
    request = ApprovalRequest(tool_name='rm', metadata={'approval_policy': 'blocked', 'approval_reason': 'Not here.'})

    request.metadata.clear()

    decision = asyncio.run(ApprovalController('approve_all').request_approval(request))
    assert (decision.approved, decision.note) == (False, 'Not here.')


def test_a_copy_with_other_metadata_has_the_facts_of_that():
    request = ApprovalRequest(tool_name='rm', metadata={'caller': 'a', 'position': 1, 'batch_size': True})

    assert (request.facts.caller, request.facts.position, request.facts.batch_size) == ('a', 1, None)
    assert request.model_copy(update={'metadata': {'caller': 'b'}}).facts.caller == 'b'
    assert request.model_copy(update={'tool_name': 'b'}).facts.caller == 'a'
    with pytest.warns(DeprecationWarning):  # as of every `copy` of pydantic's
        assert request.copy(update={'metadata': {'caller': 'b'}}).facts.caller == 'b'
    assert ApprovalRequest.model_validate_json(request.model_dump_json()).facts == request.facts
    assert 'facts' not in request.model_dump()

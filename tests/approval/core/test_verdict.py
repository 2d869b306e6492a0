"""A tool returns a verdict on a call, and a request is made from the verdict."""

from dataclasses import FrozenInstanceError

import pytest
from pydantic import TypeAdapter, ValidationError

from tool_approval import (
    ApprovalContext,
    ApprovalPresentation,
    ApprovalResult,
    LineageEntry,
    RememberOption,
    make_request,
)

OPTION = RememberOption(kind='directory', label='every file in notes/', payload={'directory': 'notes'})
ENTRY = LineageEntry(agent_name='boss', run_id='outer', tool_name='delegate', tool_call_id='0')


@pytest.mark.parametrize(
    ('verdict', 'status'),
    [
        (ApprovalResult.blocked('never'), 'blocked'),
        (ApprovalResult.pre_approved(), 'pre_approved'),
        (ApprovalResult.needs_approval(), 'needs_approval'),
    ],
)
def test_verdict_is_one_of_three_kinds(verdict, status):
    said = {
        'blocked': verdict.is_blocked,
        'pre_approved': verdict.is_pre_approved,
        'needs_approval': verdict.is_needs_approval,
    }

    assert [name for name, is_so in said.items() if is_so] == [status]
    assert verdict.status == status


def test_verdict_is_immutable():
    verdict = ApprovalResult.blocked('never')

    with pytest.raises(FrozenInstanceError):
        verdict.status = 'pre_approved'


def test_a_verdict_survives_being_written_and_read():
    verdict = ApprovalResult.needs_approval(description='Write', payload={'path': 'a'}, remember_options=(OPTION,))
    adapter = TypeAdapter(ApprovalResult)

    assert adapter.validate_json(adapter.dump_json(verdict)) == verdict


def test_request_takes_over_all_fields_of_the_verdict():
    presentation = ApprovalPresentation(type='diff', content='+a')
    verdict = ApprovalResult.needs_approval(
        description='Write to a',
        payload={'path': 'a'},
        presentation=presentation,
        reason='outside',
        remember_options=(OPTION,),
        bound_to={'cwd': 'notes'},
        group_id='group',
    )
    context = ApprovalContext(tool_name='write', args={'path': 'a', 'content': 'b'})

    request = make_request(context, verdict, tool_call_id='call')

    assert (request.tool_name, request.args) == ('write', {'path': 'a', 'content': 'b'})
    assert (request.description, request.payload, request.reason) == ('Write to a', {'path': 'a'}, 'outside')
    assert (request.presentation, request.remember_options) == (presentation, (OPTION,))
    assert (request.bound_to, request.group_id, request.tool_call_id) == ({'cwd': 'notes'}, 'group', 'call')


def test_empty_verdict_leaves_all_arguments_and_describes_the_call():
    context = ApprovalContext(tool_name='write', args={'path': 'a'})

    request = make_request(context, ApprovalResult.needs_approval())

    assert request.payload == {'path': 'a'}
    assert request.description == "write(path='a')"


def test_an_empty_payload_is_a_payload():
    context = ApprovalContext(tool_name='write', args={'path': 'a'})

    request = make_request(context, ApprovalResult.needs_approval(payload={}))

    assert request.payload == {}
    assert request.description == 'write()'


def test_request_takes_ids_and_lineage_from_the_metadata():
    metadata = {'run_id': 'run', 'session_id': 'session', 'batch_id': 'batch', 'lineage': [ENTRY.model_dump()]}
    context = ApprovalContext(tool_name='write', args={}, metadata=metadata)

    request = make_request(context, ApprovalResult.needs_approval())

    assert (request.run_id, request.session_id, request.group_id) == ('run', 'session', 'batch')
    assert request.lineage == (ENTRY,)
    assert request.metadata == metadata


def test_details_and_the_verdict_win_over_the_metadata():
    metadata = {'run_id': 'run', 'batch_id': 'batch', 'lineage': ['unreadable']}
    context = ApprovalContext(tool_name='write', args={}, metadata=metadata)

    request = make_request(context, ApprovalResult.needs_approval(group_id='group'), run_id='other', lineage=(ENTRY,))

    assert (request.run_id, request.group_id, request.lineage) == ('other', 'group', (ENTRY,))


def test_metadata_that_is_not_a_string_is_no_id():
    context = ApprovalContext(tool_name='write', args={}, metadata={'run_id': 1, 'session_id': None, 'batch_id': 2})

    request = make_request(context, ApprovalResult.needs_approval())

    assert (request.run_id, request.session_id, request.group_id) == (None, None, None)


def test_a_lineage_that_cannot_be_read_is_an_error_and_not_the_outermost_run():
    context = ApprovalContext(tool_name='write', args={}, metadata={'lineage': ['boss']})

    with pytest.raises(ValidationError):
        make_request(context, ApprovalResult.needs_approval())


def test_two_options_of_one_kind_are_refused():
    with pytest.raises(ValueError, match='have the same kind'):
        ApprovalResult.needs_approval(remember_options=(OPTION, OPTION))

"""What stands above the content cannot be forged by it."""

import pytest
from tool_approval.display import facts

from tool_approval import ApprovalPresentation, ApprovalRequest


def told(path: str, **metadata) -> str:
    presentation = ApprovalPresentation(type='file_content', content='x', metadata={'path': path, **metadata})
    return dict(facts(ApprovalRequest(tool_name='t', description='t()', presentation=presentation)))['file']


@pytest.mark.parametrize(
    ('path', 'is_new', 'shown'),
    [
        ('notes', True, 'notes (new)'),
        ('notes (new)', False, '"notes (new)"'),
        ('notes (new)', True, '"notes (new)" (new)'),
        ('"notes" (new)', False, '"<U+0022>notes<U+0022> (new)"'),
        ('"notes"', False, '"<U+0022>notes<U+0022>"'),
        ('notes (old)', False, 'notes (old)'),
        ('no"tes', False, 'no"tes'),
    ],
)
def test_an_old_file_cannot_pass_for_a_new_one(path: str, is_new: bool, shown: str) -> None:
    assert told(path, is_new=is_new) == shown


def of_metadata(run_id: str | None = 'r', **metadata: object) -> dict[str, str]:
    return dict(facts(ApprovalRequest(tool_name='t', run_id=run_id, metadata=metadata)))


def test_capabilities_cannot_pass_for_fewer_or_for_words_of_ours() -> None:
    lacks = ['net', 'a, b', 'fs.write:/srv', 'x"', '\x1b[2K', 'net']

    shown = of_metadata(missing_capabilities=lacks)['grants']

    assert shown == 'net, "a, b", fs.write:/srv, "x<U+0022>", "<U+001B>[2K", to this tool until the run ends'
    assert of_metadata(None, missing_capabilities=['net'])['grants'] == 'net, for this call'
    assert 'grants' not in of_metadata(missing_capabilities=[])


def test_a_worker_is_shown_where_it_is_not_the_agent_that_asks() -> None:
    assert of_metadata(worker='crawler', caller='boss')['worker'] == 'crawler'
    assert of_metadata(worker='a\nb')['worker'] == 'a<U+000A>b'
    assert 'worker' not in of_metadata(worker='boss', caller='boss')
    assert 'worker' not in of_metadata(worker=1)


@pytest.mark.parametrize('value', [10**4000, [10**4000] * 3, {'a': 10**4000, 'b': 1}, [1, (10**300, 2)]])
def test_a_description_that_repeats_a_long_integer_is_not_shown(value: object) -> None:
    request = ApprovalRequest(tool_name='t', args={'x': value, 'y': 1})

    assert facts(request) == []
    assert facts(request.model_copy(update={'description': f'{request.description} '})) != []

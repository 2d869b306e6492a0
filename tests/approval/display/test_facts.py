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


@pytest.mark.parametrize('value', [10**4000, [10**4000] * 3, {'a': 10**4000, 'b': 1}, [1, (10**300, 2)]])
def test_a_description_that_repeats_a_long_integer_is_not_shown(value: object) -> None:
    request = ApprovalRequest(tool_name='t', args={'x': value, 'y': 1})

    assert facts(request) == []
    assert facts(request.model_copy(update={'description': f'{request.description} '})) != []

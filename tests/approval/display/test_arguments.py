"""Names of every type differ on the screen."""

from itertools import combinations

import pytest
from tool_approval.display import display

from tool_approval import ApprovalPresentation, ApprovalRequest


def drawn(value: object) -> list[str]:
    call = ApprovalRequest(tool_name='t', args={'x': value}, description='d')
    return [line.text for line in display(call).lines][1:]


KEYS = [1, '1', 1.0, '1.0', True, 'True', 'true', None, 'None', 'null', b'a', "b'a'", (1,), '(1,)', '(int 1)', '1.', '']


def test_keys_of_different_types_are_drawn_differently() -> None:
    for one, other in combinations(KEYS, 2):
        assert drawn({one: 'x'}) != drawn({other: 'x'}), (one, other)


def test_mapping_with_number_keys_is_not_drawn_as_a_list() -> None:
    assert drawn({1: 'x', 2: 'y'}) == ['  (int 1): "x"', '  (int 2): "y"']
    assert drawn(['x', 'y']) == ['  1. "x"', '  2. "y"']


@pytest.mark.parametrize(
    ('key', 'label'), [(None, '(NoneType null):'), (True, '(bool true):'), (b'z', "(bytes b'z'):")]
)
def test_key_that_is_not_text_is_drawn_in_parentheses(key: object, label: str) -> None:
    assert drawn({key: 1}) == [f'  {label} 1']


def test_first_and_last_of_many_names_are_drawn() -> None:
    lines = drawn({f'k{number}': number for number in range(1000)})

    assert lines[0] == '  k0: 0'
    assert lines[-1] == '  k999: 999'
    assert any('more items' in line for line in lines)


DIFF = '--- a.py\n+++ a.py\n@@ -3,3 +3,3 @@\n before the change\n-x = 1\n+x = 2\n after the change\n'


def edit(diff: str = DIFF, path: str = 'a.py', defaults: object = None, **args: object) -> list[str]:
    metadata = {'path': path, 'defaults': defaults}
    presentation = ApprovalPresentation(type='diff', content=diff, metadata=metadata)
    call = ApprovalRequest(tool_name='t', args=args, presentation=presentation)
    return [f'{line.kind} {line.text}' for line in display(call, changes_only=True).lines]


CHANGES = ['removed x = 1', 'added x = 2']


def test_diff_made_by_a_tool_is_reduced_to_its_changes() -> None:
    assert edit(path='a.py') == CHANGES
    assert edit(path='b.py') == ['text --- a.py', 'text +++ a.py', *CHANGES]
    assert edit('--- a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n') == CHANGES[:1]
    assert edit(f'Moves it.\n{DIFF}') == ['text Moves it.', *CHANGES]


def test_diff_without_a_change_is_drawn_unchanged() -> None:
    assert edit('@@ -1 +1 @@\n same\n') == ['hunk @@ -1 +1 @@', 'context same']
    assert edit('no diff') == ['text no diff']


@pytest.mark.parametrize('patch', [DIFF, DIFF.removesuffix('\n')])
def test_a_patch_that_a_model_wrote_is_shown_whole(patch: str) -> None:
    lines = edit(patch=patch)

    assert 'hunk @@ -3,3 +3,3 @@' in lines
    assert 'context before the change' in lines


def test_replaced_text_is_left_out_only_if_the_diff_shows_it() -> None:
    assert edit(old_text='= 1', new_text='= 2') == CHANGES
    assert edit(old_text='before the change\nx = 1', new_text='before the change\nx = 2') == CHANGES
    assert edit(old_text='= 1', new_text='= 3')[2:] == [
        'meta arguments:',
        'value old_text: "= 1"',
        'value new_text: "= 3"',
    ]


@pytest.mark.parametrize(
    ('old', 'new'), [('no such text', 'hidden text'), ('x = 1', 'x = 1'), ('', 'hidden'), ('= 1', 7), ('\0', '\0\0')]
)
def test_arguments_that_the_diff_does_not_show_are_listed(old: str, new: object) -> None:
    assert 'meta arguments:' in edit(old_text=old, new_text=new)
    assert 'meta arguments:' in edit('@@ -1 +1 @@\n same\n', old_text=old, new_text=new)


def test_argument_found_only_in_unchanged_lines_is_listed() -> None:
    assert edit(content='before the change')[2:] == ['meta arguments:', 'value content: "before the change"']


def test_an_argument_that_is_as_if_it_were_not_given_is_not_shown() -> None:
    assert edit(defaults={'all': False, 'other': 1}, all=False) == CHANGES
    assert edit(defaults={'all': False}, all=True)[2:] == ['meta arguments:', 'value all: true']
    assert edit(defaults={'all': 0}, all=False)[2:] == ['meta arguments:', 'value all: false']
    assert edit(defaults='all', all=False)[2:] == ['meta arguments:', 'value all: false']

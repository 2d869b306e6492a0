"""Names of every type differ on the screen."""

from itertools import combinations

import pytest
from tool_approval.display import display_lines

from tool_approval import ApprovalRequest


def drawn(value: object) -> list[str]:
    call = ApprovalRequest(tool_name='t', args={'x': value}, description='d')
    return [line.text for line in display_lines(call)][1:]


KEYS = [1, '1', 1.0, '1.0', True, 'True', 'true', None, 'None', 'null', b'a', "b'a'", (1,), '(1,)', '(int 1)', '1.', '']


def test_keys_of_different_types_are_drawn_differently() -> None:
    for one, other in combinations(KEYS, 2):
        assert drawn({one: 'x'}) != drawn({other: 'x'}), (one, other)


def test_a_mapping_by_number_is_no_list() -> None:
    assert drawn({1: 'x', 2: 'y'}) == ['  (int 1): "x"', '  (int 2): "y"']
    assert drawn(['x', 'y']) == ['  1. "x"', '  2. "y"']


@pytest.mark.parametrize(
    ('key', 'label'), [(None, '(NoneType null):'), (True, '(bool true):'), (b'z', "(bytes b'z'):")]
)
def test_what_is_no_text_stands_in_parentheses(key: object, label: str) -> None:
    assert drawn({key: 1}) == [f'  {label} 1']


def test_of_many_names_the_first_and_the_last_are_drawn() -> None:
    lines = drawn({f'k{number}': number for number in range(1000)})

    assert lines[0] == '  k0: 0'
    assert lines[-1] == '  k999: 999'
    assert any('more items' in line for line in lines)

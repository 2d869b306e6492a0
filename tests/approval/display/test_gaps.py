"""What stands behind a long gap is overlooked; what is indented or in a table is not."""

import pytest
from tool_approval.display.warnings import has_gap

BLANKS = ' ' * 60


@pytest.mark.parametrize(
    'text',
    [
        f'ls{BLANKS}; rm -rf x',
        f'{BLANKS}rm',
        f'ls\n#{BLANKS}x',
        'ls' + '\t' * 15 + '; rm',
        'ls' + '\n' * 20 + 'rm',
        '\n' * 20 + 'rm',
        f'{BLANKS}\nls\n{" " * 81}rm',
        f'a\n{" " * 70}b' * 2_001,
    ],
)
def test_text_out_of_sight_in_a_command_is_a_gap(text):
    assert has_gap(text, is_code=True)


@pytest.mark.parametrize('text', [f'ls{BLANKS}', f'ls{BLANKS}\nls', 'ls' + '\n' * 30, 'a\n\n\nb', f'for\n{BLANKS}x'])
def test_trailing_blanks_and_indentation_are_not_gaps(text):
    assert not has_gap(text, is_code=True)


@pytest.mark.parametrize('text', [f'name{BLANKS}value', f'{BLANKS}x', 'a' + '\t' * 15 + 'b', 'if\n' + '\t' * 18 + 'x'])
def test_a_table_and_an_indentation_that_fit_a_screen_are_none_in_a_file(text):
    assert not has_gap(text, is_code=False)


@pytest.mark.parametrize(
    'text',
    [f'{"x" * 40}{BLANKS}value', f'a{" " * 80}b', 'a' + '\t' * 20 + 'b', f'x\n{" " * 81}y', 'a' + '\n' * 20 + 'b'],
)
def test_text_of_a_file_behind_the_edge_of_the_screen_is_a_gap(text):
    assert has_gap(text, is_code=False)

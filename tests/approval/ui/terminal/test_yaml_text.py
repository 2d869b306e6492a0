from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.answering import UnreadableArguments
from tool_approval.core.canonical import canonical_json
from tool_approval.ui.terminal.editing import as_text, is_yaml, read_text, read_value
from tool_approval.ui.terminal.yaml_text import LONGEST, NotYaml, dump, load

texts = st.text(st.characters(exclude_categories=['Cs']), max_size=20) | st.sampled_from(
    [
        'yes',
        'no',
        'on',
        '12:30',
        '2026-01-02',
        '010',
        '1_000',
        '~',
        'null',
        'true',
        '<<',
        '=',
        '# a',
        'a\nb\n',
        ' a',
        '',
    ]
)
values = st.recursive(
    texts | st.booleans() | st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.untraced
@given(st.dictionaries(texts, values, max_size=4))
def test_unchanged_text_reads_back_equal(args: dict[str, Any]) -> None:
    text = as_text('tool', args)

    read = read_text(text, as_yaml=is_yaml(args))

    assert canonical_json(read if read is not None else {}) == canonical_json(args)


def test_first_and_last_lines_carry_no_model_text_for_editors() -> None:
    args = {'a': '# vim: set x\n' * 30}

    lines = as_text('tool', args).splitlines()

    assert not any('vim:' in line for line in [*lines[:5], *lines[-5:]])


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('a: *b', 'an alias is not allowed in line 1'),
        ('a: &b c', 'an anchor or a tag is not allowed in line 1'),
        ('a: !!int "1"', 'an anchor or a tag is not allowed in line 1'),
        ('a: 1\na: 2', 'a name appears twice in line 2'),
        ('1: a', 'a name must be text; put it in quotes in line 1'),
        ('[a]: b', 'a name must be text; put it in quotes in line 1'),
        ('- a', 'the text is not a mapping of names to values'),
        ('a: \x00', 'the text has a character or a number that is not allowed'),
        ('a: ' + '9' * 5000, 'the text has a character or a number that is not allowed'),
        ('[' * 1000, 'nested too deeply'),
        ('a' * (LONGEST + 1), f'longer than {LONGEST} characters'),
    ],
)
def test_yaml_with_more_than_plain_values_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NotYaml) as raised:
        load(text)

    assert str(raised.value) == problem


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(UnreadableArguments):
        read_text('a: 1e999', as_yaml=True)


@pytest.mark.parametrize('text', ['', 'x', '1, "b": 2', '1}', 'NaN', '"\ud800"'])
def test_value_outside_of_json_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArguments):
        read_value(text)


def test_a_json_value_is_read() -> None:
    assert read_value('{"a": [1, null]}') == {'a': [1, None]}


def test_characters_that_an_editor_obeys_or_hides_are_escaped() -> None:
    text = dump({'path': 'a\u200bb'})

    assert text.isascii()
    assert load(text) == {'path': 'a\u200bb'}


def test_value_too_deep_for_pyyaml_raises_not_yaml(monkeypatch):
    def too_deep(*args, **options):
        raise RecursionError

    monkeypatch.setattr('tool_approval.ui.terminal.yaml_text._dumped', too_deep)

    with pytest.raises(NotYaml, match='nested too deeply'):
        dump({'a': 1})


def test_invisible_characters_are_escaped_in_yaml():
    text = dump({'a': 'b\u200bc'})

    assert '\u200b' not in text
    assert load(text) == {'a': 'b\u200bc'}

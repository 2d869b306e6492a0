"""How much of a request is looked through, and that it is said where not all is."""

import pytest
from tool_approval.core.request import LineageEntry, RememberOption
from tool_approval.display import warnings_of
from tool_approval.display.texts import Care, texts_of

from tool_approval import ApprovalPresentation, ApprovalRequest

NOT_ALL = 'too long to check in full: unchecked characters in the middle may be deceptive'
CYRILLIC_A = '\u0430 is U+0430 CYRILLIC SMALL LETTER A'


def request(**args) -> ApprovalRequest:
    return ApprovalRequest(tool_name='t', args=args, description='d')


def test_a_short_text_is_looked_through_whatever_long_ones_stand_before_it() -> None:
    padding = [f'{number} {"ж" * 1000}' for number in range(900)]

    found = warnings_of(request(padding=padding, host='\u0430pple.com'))

    assert any(CYRILLIC_A in told for told in found)
    assert found[-1] == NOT_ALL


def test_arguments_are_searched_before_nested_values() -> None:
    found = warnings_of(request(padding=[[number] for number in range(5000)], small=[['\u0430pple.com']]))

    assert any(CYRILLIC_A in told for told in found)
    assert found[-1] == NOT_ALL


@pytest.mark.parametrize(
    'values',
    [
        [[]] * 5000,
        [{}] * 5000,
        [''] * 5000,
        [None] * 5000,
        {f'{number}': number for number in range(5000)},
        {number: [] for number in range(5000)},
        [[[[]] * 100] * 10] * 10,
    ],
    ids=['lists', 'mappings', 'texts', 'nulls', 'names', 'numbers', 'nested'],
)
def test_search_of_very_many_values_stops_with_a_warning(values: object) -> None:
    assert warnings_of(request(x=values)) == [NOT_ALL]


def test_the_beginning_and_the_end_of_many_values_are_looked_through() -> None:
    for place in (0, -1):
        values: list[object] = list(range(5000))
        values[place] = '\u0430pple.com'
        names = {f'k{number}': value for number, value in enumerate(values)}

        for call in (request(x=values), request(x=names), request(**names)):
            assert any(CYRILLIC_A in told for told in warnings_of(call))


def test_as_many_values_as_are_drawn_are_all_looked_through() -> None:
    assert warnings_of(request(x=list(range(900)), y=[[]] * 50)) == []


@pytest.mark.parametrize(
    'texts',
    [
        [f'{number}{"ж" * 99}' for number in range(900)],
        ['ж' * 40_001],
        [''.join(map(chr, range(0x1200, 0x1E00))) + ''.join(map(chr, range(0xA000, 0xA900)))],
    ],
    ids=['many', 'one', 'many characters'],
)
def test_search_of_very_many_characters_stops_with_a_warning(texts: list[str]) -> None:
    assert warnings_of(request(x=texts))[-1] == NOT_ALL


def test_many_different_ideographs_are_nothing_special() -> None:
    assert warnings_of(request(x='\n'.join(map(chr, range(0x5E00, 0x8000))))) == []


def test_search_of_many_agent_levels_begins_with_the_nearest() -> None:
    def nested(names: list[str]) -> ApprovalRequest:
        levels = [LineageEntry(agent_name=name, run_id='r', tool_name='t', tool_call_id='c') for name in names]
        return ApprovalRequest(tool_name='t', lineage=tuple(levels))

    found = warnings_of(nested(['main'] * 100 + ['\u0430pple']))

    assert CYRILLIC_A in found[0]
    assert found[-1] == NOT_ALL
    assert warnings_of(nested(['main'] * 100)) == []


def test_a_text_is_looked_at_as_carefully_as_its_most_careful_place_wants_it() -> None:
    call = ApprovalRequest(tool_name='t', args={'command': 'rm \u2013rf'}, description='rm \u2013rf')

    assert texts_of(call).by_text['rm \u2013rf'] is Care.CODE
    assert 'EN DASH' in warnings_of(call)[0]


@pytest.mark.parametrize('key', ['command', 'Script', 'argv'])
def test_in_what_a_program_reads_every_sign_of_every_line_counts(key: str) -> None:
    text = 'echo \u201chi\u201d\nls'

    assert 'LEFT DOUBLE QUOTATION MARK' in warnings_of(request(**{key: text}))[0]
    assert 'LEFT DOUBLE QUOTATION MARK' in warnings_of(request(**{key: [{'x': text}]}))[0]
    assert warnings_of(request(text=text)) == []


def test_a_text_that_names_its_interpreter_is_a_script() -> None:
    assert 'LEFT DOUBLE QUOTATION MARK' in warnings_of(request(text='#!/bin/sh\necho \u201chi\u201d'))[0]


def test_labels_of_options_that_are_never_offered_are_not_looked_at() -> None:
    options = [RememberOption(kind=f'{number}', label='x', payload={}) for number in range(9)]
    odd = RememberOption(kind='odd', label='\u200b', payload={})

    assert warnings_of(ApprovalRequest(tool_name='t', remember_options=(*options, odd))) == []
    assert warnings_of(ApprovalRequest(tool_name='t', remember_options=(*options[1:], odd))) != []


def test_a_mark_is_named_wherever_it_is_not_in_a_word_of_its_script() -> None:
    presented = ApprovalPresentation(type='text', content='x\u0301' * 3000 + '-\u0301\ny')

    assert 'U+0301 COMBINING ACUTE ACCENT (3,001 times)' in warnings_of(request(x='x\u0301' * 3000 + '-\u0301'))[0]
    assert 'U+0301' in warnings_of(ApprovalRequest(tool_name='t', presentation=presented))[0]
    assert warnings_of(request(x='x\u0301' * 3000)) == []

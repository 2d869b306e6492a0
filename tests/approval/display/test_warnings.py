"""How much of a request is looked through, and that it is said where not all is."""

import pytest
from tool_approval.core.request import LineageEntry, RememberOption
from tool_approval.display import warnings_of
from tool_approval.display.texts import Care, texts_of

from tool_approval import ApprovalPresentation, ApprovalRequest

NOT_ALL = 'too long to check in full: characters in the middle may not be what they seem'
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


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        ('cd /tmp\nrm a\u2215b', 'U+2215 DIVISION SLASH'),
        ('cd /tmp\nls \u2223 sh', 'U+2223 DIVIDES'),
        ('cd /tmp\nrm \u2013rf x', 'U+2013 EN DASH'),
        ('cd /tmp\nrm \uff0dr', 'U+FF0D FULLWIDTH HYPHEN-MINUS'),
        ('cd /tmp\ncurl https://\u0430\u0440\u0440\u04cf\u0435.com # \u0436', 'U+0430 CYRILLIC SMALL LETTER A'),
        ('cd /tmp\nls\u200b', 'U+200B ZERO WIDTH SPACE'),
        ('cd /tmp\nport 8\u066080', 'U+0660 ARABIC-INDIC DIGIT ZERO'),
    ],
)
def test_each_line_of_an_argument_that_nothing_is_known_of_is_looked_at(text: str, told: str) -> None:
    assert any(told in warning for warning in warnings_of(request(x=text)))


@pytest.mark.parametrize(
    'text',
    [
        'it\u2019s\na text \u2013 with dashes',
        '\u201cquoted\u201d\u2026\n3\u00d74 \u2014 well',
        'src\n\u251c\u2500\u2500 a\n\u2514\u2500\u2500 b',
        '\u65e5\u672c\u3001\n\u6771\u4eac\u3002',
        '2-\u0435 \u0438\u0437\u0434\u0430\u043d\u0438\u0435\n3-\u0430',
    ],
    ids=['quotes', 'typography', 'tree', 'Japanese', 'Russian'],
)
def test_typography_of_several_lines_raises_no_warning(text: str) -> None:
    assert warnings_of(request(x=text)) == []


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

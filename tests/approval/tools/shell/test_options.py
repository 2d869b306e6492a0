import re

from tool_approval.tools.shell import program_data

from .parts import decision, unasked


def test_every_pattern_of_the_program_data_compiles():
    specs = [
        *program_data.OPTION_SPECS.values(),
        *program_data.GIT.values(),
        *(wrapper.spec for wrapper in program_data.WRAPPERS.values()),
    ]
    patterns = [
        *(each for spec in specs for each in (spec.flags, spec.valued, spec.attached, spec.instead, spec.refused)),
        *(options.harmless or '' for options in program_data.UNSAFE.values()),
        *(pattern for options in program_data.NO_PATH.values() for pattern in options.values()),
    ]

    assert len(patterns) > 500
    assert all(map(re.compile, patterns))


def test_no_letter_of_an_option_takes_a_value_and_none():
    sections = (program_data._DATA[name] for name in ('known', 'known_git', 'wrapper'))
    letters = {
        names: ''.join(fields.get(kind, '') for kind in ('flags', 'valued', 'optional'))
        for section in sections
        for names, fields in section.items()
    }

    assert [names for names, each in letters.items() if len(set(each)) != len(each)] == []


def test_what_stands_behind_two_dashes_is_no_option():
    assert decision('sort -o f', *unasked('sort')) == 'ask'
    assert decision('sort -- -o', *unasked('sort')) == 'allow'


def test_a_query_that_only_reads_keeps_the_approval_of_its_program():
    assert decision("sqlite3 f 'select a from b'", *unasked('sqlite3')) == 'allow'
    assert decision("sqlite3 f '.shell ls'", *unasked('sqlite3')) == 'ask'

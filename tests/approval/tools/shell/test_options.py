from .parts import decision, unasked


def test_what_stands_behind_two_dashes_is_no_option():
    assert decision('sort -o f', *unasked('sort')) == 'ask'
    assert decision('sort -- -o', *unasked('sort')) == 'allow'


def test_a_query_that_only_reads_keeps_the_approval_of_its_program():
    assert decision("sqlite3 f 'select a from b'", *unasked('sqlite3')) == 'allow'
    assert decision("sqlite3 f '.shell ls'", *unasked('sqlite3')) == 'ask'

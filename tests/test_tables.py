import pytest

from .tables import table


def test_every_row_that_fails_is_reported_with_its_values():
    @table('a, b', [(1, 1), (1, 2), (2, 2), (0, 0)])
    def check(a, b):
        assert a == b
        with pytest.raises(ZeroDivisionError):
            1 / a

    with pytest.raises(BaseExceptionGroup, match=r'^3 of 4 rows fail$') as reported:
        check()

    assert [error.__notes__ for error in reported.value.exceptions] == [
        ["in the row {'a': 1, 'b': 1}"],
        ["in the row {'a': 1, 'b': 2}"],
        ["in the row {'a': 2, 'b': 2}"],
    ]
    assert 'assert 1 == 2' in str(reported.value.exceptions[1])


@pytest.fixture
def seen():
    return []


@table('word', ['a', 'b'])
@table('number', [1, 2])
def check_all(seen, word, number):
    seen.append((word, number))


def test_tables_multiply_and_share_their_fixtures(seen):
    check_all(seen=seen)

    assert seen == [('a', 1), ('a', 2), ('b', 1), ('b', 2)]


@table('row', range(3))
def test_a_table_takes_fixtures_by_name(seen, row):
    assert seen == list(range(row))
    seen.append(row)


def test_a_table_without_rows_is_a_mistake():
    with pytest.raises(AssertionError, match='tests nothing'):
        table('row', [])

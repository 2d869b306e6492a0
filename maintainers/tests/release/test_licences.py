import pytest

from maintainers.release.licences import Kind, kind_of, stated


def distribution(expression: str = '', classifiers: tuple[str, ...] = (), text: str = '') -> dict[str, object]:
    return {'name': 'X', 'version': '1', 'expression': expression, 'classifiers': list(classifiers), 'text': text}


@pytest.mark.parametrize(
    ('expression', 'kind'),
    [
        ('MIT', Kind.PERMISSIVE),
        ('Apache-2.0 AND BSD-3-Clause', Kind.PERMISSIVE),
        ('GPL-3.0-or-later', Kind.COPYLEFT),
        ('AGPL-3.0-only', Kind.COPYLEFT),
        ('MIT AND GPL-2.0-only', Kind.COPYLEFT),
        ('MIT OR GPL-2.0-only', Kind.PERMISSIVE),
        ('(MIT OR GPL-2.0-only) AND BSD-2-Clause', Kind.COPYLEFT),
        ('LGPL-3.0-only', Kind.WEAK_COPYLEFT),
        ('MPL-2.0', Kind.WEAK_COPYLEFT),
        ('MPL-2.0 AND MIT', Kind.WEAK_COPYLEFT),
        ('LicenseRef-Proprietary', Kind.UNKNOWN),
    ],
)
def test_an_expression_is_read_by_its_operators(expression: str, kind: Kind):
    assert kind_of(distribution(expression)) is kind


@pytest.mark.parametrize(
    ('classifiers', 'kind'),
    [
        (('License :: OSI Approved :: MIT License',), Kind.PERMISSIVE),
        (('License :: OSI Approved :: GNU General Public License v3 (GPLv3)',), Kind.COPYLEFT),
        (('License :: OSI Approved :: GNU Affero General Public License v3',), Kind.COPYLEFT),
        (('License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)',), Kind.WEAK_COPYLEFT),
        (('License :: OSI Approved :: MIT License', 'License :: Other/Proprietary License'), Kind.UNKNOWN),
    ],
)
def test_of_several_classifiers_the_strictest_counts(classifiers: tuple[str, ...], kind: Kind):
    assert kind_of(distribution(classifiers=classifiers)) is kind


def test_the_expression_goes_before_the_classifiers():
    assert kind_of(distribution('GPL-3.0-only', ('License :: OSI Approved :: MIT License',))) is Kind.COPYLEFT


@pytest.mark.parametrize(
    ('text', 'kind'),
    [
        ('BSD 3-Clause', Kind.PERMISSIVE),
        ('', Kind.UNKNOWN),
        ('Not MIT. ' * 20, Kind.UNKNOWN),
        ('GPLv2+', Kind.COPYLEFT),
    ],
)
def test_a_text_counts_only_if_it_is_short_enough_to_be_a_name(text: str, kind: Kind):
    assert kind_of(distribution(text=text)) is kind


def test_what_a_distribution_says_is_shown_on_one_line():
    assert stated(distribution(text='two\n lines')) == 'X 1: two lines'
    assert stated(distribution()) == 'X 1: says nothing'

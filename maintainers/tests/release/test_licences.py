from typing import Any

import pytest

from maintainers.release.licences import Kind, kind_of, stated


def distribution(expression: str = '', classifiers: tuple[str, ...] = (), text: str = '') -> dict[str, object]:
    return {'name': 'X', 'version': '1', 'expression': expression, 'classifiers': list(classifiers), 'text': text}


MIT = 'License :: OSI Approved :: MIT License'


@pytest.mark.parametrize(
    ('licence', 'kind'),
    [
        # An expression is read by its operators.
        ({'expression': 'MIT'}, Kind.PERMISSIVE),
        ({'expression': 'Apache-2.0 AND BSD-3-Clause'}, Kind.PERMISSIVE),
        ({'expression': 'GPL-3.0-or-later'}, Kind.COPYLEFT),
        ({'expression': 'AGPL-3.0-only'}, Kind.COPYLEFT),
        ({'expression': 'MIT AND GPL-2.0-only'}, Kind.COPYLEFT),
        ({'expression': 'MIT OR GPL-2.0-only'}, Kind.PERMISSIVE),
        ({'expression': '(MIT OR GPL-2.0-only) AND BSD-2-Clause'}, Kind.COPYLEFT),
        ({'expression': 'LGPL-3.0-only'}, Kind.WEAK_COPYLEFT),
        ({'expression': 'MPL-2.0'}, Kind.WEAK_COPYLEFT),
        ({'expression': 'MPL-2.0 AND MIT'}, Kind.WEAK_COPYLEFT),
        ({'expression': 'LicenseRef-Proprietary'}, Kind.UNKNOWN),
        # Of several classifiers, the strictest counts.
        ({'classifiers': (MIT,)}, Kind.PERMISSIVE),
        ({'classifiers': ('License :: OSI Approved :: GNU General Public License v3 (GPLv3)',)}, Kind.COPYLEFT),
        ({'classifiers': ('License :: OSI Approved :: GNU Affero General Public License v3',)}, Kind.COPYLEFT),
        (
            {'classifiers': ('License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)',)},
            Kind.WEAK_COPYLEFT,
        ),
        ({'classifiers': (MIT, 'License :: Other/Proprietary License')}, Kind.UNKNOWN),
        # The expression goes before the classifiers.
        ({'expression': 'GPL-3.0-only', 'classifiers': (MIT,)}, Kind.COPYLEFT),
        # A text counts only if it is short enough to be a name.
        ({'text': 'BSD 3-Clause'}, Kind.PERMISSIVE),
        ({'text': ''}, Kind.UNKNOWN),
        ({'text': 'Not MIT. ' * 20}, Kind.UNKNOWN),
        ({'text': 'GPLv2+'}, Kind.COPYLEFT),
    ],
)
def test_kind_of_a_licence_is_found(licence: dict[str, Any], kind: Kind):
    assert kind_of(distribution(**licence)) is kind


def test_licence_of_a_distribution_is_shown_on_one_line():
    assert stated(distribution(text='two\n lines')) == 'X 1: two lines'
    assert stated(distribution()) == 'X 1: says nothing'

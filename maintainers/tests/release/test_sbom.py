from typing import Any

import pytest

from maintainers.release.sbom import described, problems

INSTALLED = {'idna': '3.20', 'typing-extensions': '4.16.0'}


def bill(**component: Any) -> dict[str, Any]:
    """A bill about `tool-approval`; what is given changes its first component."""
    first = {'name': 'idna', 'version': '3.20', 'licenses': [{'license': {'id': 'BSD-3-Clause'}}], **component}
    second = {**first, 'name': 'typing_extensions', 'version': '4.16.0', 'licenses': [{}]}
    return {'metadata': {'component': {'name': 'tool-approval'}}, 'components': [first, second]}


def test_a_bill_is_about_the_version_that_is_released():
    complete = described(bill(), version='1.2.0')

    assert complete['metadata']['component']['purl'] == 'pkg:pypi/tool-approval@1.2.0'
    assert problems(complete, name='tool-approval', installed=INSTALLED) == []


@pytest.mark.parametrize(
    ('component', 'problem'),
    [
        ({'name': 'other'}, 'idna is installed and not listed.'),
        ({'version': '3.0'}, 'idna is listed as 3.0 and installed as 3.20.'),
        ({'licenses': []}, 'idna has no licence.'),
    ],
)
def test_a_bill_that_leaves_something_out_is_found(component: dict[str, Any], problem: str):
    complete = described(bill(**component), version='1.2.0')

    assert problem in problems(complete, name='tool-approval', installed=INSTALLED)


def test_a_bill_without_a_version_is_found():
    assert problems(bill(), name='tool-approval', installed=INSTALLED) == ['The bill is not about tool-approval.']

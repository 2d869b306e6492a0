"""Check that the licences of all dependencies permit what ours permits.

python -m maintainers.release.licences

GPL, AGPL and unknown licences fail the check. LGPL and MPL are listed: we import such a library, and neither change nor
ship it. The check trusts the metadata of a distribution, and does not search its files.
"""

import json
import re
import sys
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import Any

from .dependency_sets import FOLDER
from .environments import CommandError, create, run

INVENTORY = """
import importlib.metadata as metadata, json
print(json.dumps([
    {
        'name': one.metadata['Name'],
        'version': one.version,
        'expression': one.metadata['License-Expression'] or '',
        'classifiers': [name for name in one.metadata.get_all('Classifier', []) if name.startswith('License ::')],
        'text': one.metadata['License'] or '',
    }
    for one in metadata.distributions()
]))
"""


class Kind(IntEnum):
    """Conditions of a licence for users of the library, the mildest first."""

    PERMISSIVE = 0
    WEAK_COPYLEFT = 1
    UNKNOWN = 2
    COPYLEFT = 3


REVIEWED: dict[str, str] = {}
"""Licences of distributions without readable metadata, by name. A reviewer has looked into their files."""

_WEAK = re.compile(r'\bLGPL|Lesser General Public|Library or Lesser|\bMPL\b|Mozilla Public|\bEPL\b|Eclipse Public')
_STRONG = re.compile(r'\bA?GPL|General Public License|Affero|\bSSPL|\bBUSL|Business Source')
_PERMISSIVE = re.compile(
    r'\b(MIT|MIT-0|BSD|0BSD|Apache|ISC|ISCL|PSF|PSF-2\.0|Python-2\.0|Python Software Foundation|CNRI-Python|Unlicense'
    r'|CC0|Zlib|HPND)\b'
)


def kind_of(distribution: dict[str, Any]) -> Kind:
    """Return the kind of a licence from its SPDX expression, or else its classifiers, or else its short text."""
    if expression := distribution['expression'] or REVIEWED.get(distribution['name'].lower(), ''):
        return _kind_of_expression(expression)
    if classifiers := [name for name in distribution['classifiers'] if name != 'License :: OSI Approved']:
        return max(_kind_of_name(name) for name in classifiers)
    # This field may contain the whole text of the licence, whose words prove nothing.
    return _kind_of_expression(distribution['text']) if len(distribution['text']) <= 60 else Kind.UNKNOWN


def _kind_of_expression(expression: str) -> Kind:
    if '(' in expression:
        # Which `OR` binds what is not worked out: the strictest part counts.
        return max(_kind_of_name(name) for name in re.split(r'\bOR\b|\bAND\b', expression))
    choices = [[_kind_of_name(name) for name in re.split(r'\bAND\b', choice)] for choice in expression.split(' OR ')]
    return min(max(choice) for choice in choices)


def _kind_of_name(name: str) -> Kind:
    if _WEAK.search(name):
        return Kind.WEAK_COPYLEFT
    if _STRONG.search(name):
        return Kind.COPYLEFT
    return Kind.PERMISSIVE if _PERMISSIVE.search(name) else Kind.UNKNOWN


def stated(distribution: dict[str, Any]) -> str:
    """Return the licence in the metadata of a distribution, on one line."""
    says = distribution['expression'] or ', '.join(distribution['classifiers']) or distribution['text']
    return f'{distribution["name"]} {distribution["version"]}: {" ".join(says.split())[:80] or "says nothing"}'


def main() -> None:
    """Install everything that is locked, and read the licences."""
    with tempfile.TemporaryDirectory() as scratch:
        lock = str(FOLDER / 'newest.txt')
        interpreter = create(Path(scratch, 'all'), Path(sys.executable), '--requirements', lock)
        installed = json.loads(run(interpreter, '-I', '-c', INVENTORY))
    by_kind = {kind: sorted(stated(one) for one in installed if kind_of(one) is kind) for kind in Kind}
    print(f'{len(installed)} distributions, {len(by_kind[Kind.PERMISSIVE])} with a permissive licence')
    for line in by_kind[Kind.WEAK_COPYLEFT]:
        print(f'weak copyleft: {line}')
    refused = [f'unknown licence: {line}' for line in by_kind[Kind.UNKNOWN]]
    refused += [f'copyleft: {line}' for line in by_kind[Kind.COPYLEFT]]
    if refused or not installed:
        sys.exit('\n'.join(refused) or 'nothing was installed')


if __name__ == '__main__':
    try:
        main()
    except CommandError as error:
        sys.exit(str(error))

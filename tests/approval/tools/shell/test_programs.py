"""Every entry of the data keeps its promise: what it lists as allowed is, and what it lists as asked about asks.

`-k file_name` or `-k 'git and log'` runs a part of them.
"""

import re
import tomllib
from pathlib import Path

import pytest
from tool_approval.tools.shell.entries import Entries, read_tables
from tool_approval.tools.shell.names import POWERFUL

from .parts import OPEN, decision, judge, unasked

PROJECT = Path(__file__).parents[4] / 'tool_approval'
SOURCES = PROJECT / 'tool_approval' / 'tools' / 'shell' / 'programs'
"""Of this tree: a package that was built has no sources."""
INNER = ('ls', 'cat', 'echo')
"""What may stand behind a wrapper in an example."""
FILES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(SOURCES.glob('*.toml'))}
ENTRIES = [
    pytest.param(name, fields, id=f'{file}: {name}')
    for file, tables in FILES.items()
    for name, fields in tables.items()
    if not name.startswith('_')
]


def test_a_table_alone_says_what_it_says_in_its_file():
    alone = {name: tomllib.loads(text) for name, text in read_tables(SOURCES).items()}

    assert alone == {name: {name: fields} for tables in FILES.values() for name, fields in tables.items()}


@pytest.mark.parametrize(('name', 'fields'), ENTRIES)
def test_an_example_comes_out_as_its_entry_says_for_all_names_of_the_program(name, fields):
    parent = name.rpartition(' ')[0]
    names = (name, *(f'{parent} {alias}'.strip() for alias in fields.get('aliases', '').split()))
    decides = judge(*unasked(*names, *INNER))
    wrong = []
    for key, expected in (('allowed', 'allow'), ('asked', 'ask')):
        for example in fields.get(key, ()):
            rest = example.removeprefix(name)
            is_own = rest != example and (not rest or rest.startswith(' '))
            for command in [each + rest for each in names] if is_own else [example]:
                explanation = decides.explain(command)
                if explanation.decision != expected:
                    wrong.append(f'{command}: {explanation.decision}, {explanation.deciding.reason}')

    assert wrong == []
    is_only_parent = 'sub_commands' in fields and 'operands' not in fields
    assert 'allowed' in fields or 'never' in fields or is_only_parent, 'it needs `allowed`'
    assert 'asked' in fields or 'any_option' in fields or is_only_parent, 'it needs `asked`'


@pytest.mark.parametrize('name', sorted(POWERFUL))
def test_a_powerful_program_without_an_entry_runs_only_as_a_rule_names_it(name):
    decisions = {
        'the default': decision(name, default=OPEN),
        'another argument': decision(f'{name} a', *unasked(name)),
        'an option': decision(f'{name} --version', *unasked(name)),
        'input': decision(f'{name} a < b', *unasked(f'{name} a')),
        'exact words': decision(f'{name} a', *unasked(f'{name} a')),
        'any arguments': decision(f'{name} a b', {'pattern': name, 'approval': False, 'arguments': 'any'}),
    }

    allowed = {how for how, decided in decisions.items() if decided == 'allow'}
    assert allowed == {'exact words', 'any arguments'}


WRONG = {
    'a type': '[a]\nflags = ["-x"]',
    'a field': '[a]\nflag = "-x"',
    'an option twice': '[a]\nflags = "-x"\ntext = "-x"',
    'an option with two roles elsewhere': '[a]\nlike = ["_b", "_c"]\n[_b]\nflags = "-x"\n[_c]\ntext = "-x"',
    'what is missing': '[a]\nlike = ["b"]',
    'itself': '[a]\nlike = ["b"]\n[b]\nlike = ["a"]',
    'an alias twice': '[a]\naliases = "c"\n[b]\naliases = "c"',
    'a word that is no option': '[a]\nflags = "x"',
    'a flag with a value': '[a]\nflags = "--x="',
    'an operand': '[a]\noperands = "path"',
    'a star in front': '[a]\noperands = "text* read"',
    'a command in front': '[a]\noperands = "command read"',
    'a first operand that is not taken': '[a]\noperands = "text"\noperands_without_first = "-e"',
    'a value of a flag': '[a]\nflags = "-x"\nvalues = { -x = "a" }',
    'a pattern': '[a]\ntext = "-x"\nvalues = { -x = "(" }',
    'a value': 'a = 1',
    'a file': '[a',
}


@pytest.mark.parametrize('text', WRONG.values(), ids=WRONG)
def test_a_mistake_in_the_data_is_an_error(text, tmp_path):
    (tmp_path / 'x.toml').write_text(text)

    with pytest.raises((AttributeError, ValueError, re.error)):
        Entries(read_tables(tmp_path)).find('a')


def test_an_entry_is_in_one_file(tmp_path):
    (tmp_path / 'x.toml').write_text('[a]')
    (tmp_path / 'y.toml').write_text('[a]')

    with pytest.raises(ValueError, match=r'y\.toml: \[a\] is also in x\.toml'):
        read_tables(tmp_path)

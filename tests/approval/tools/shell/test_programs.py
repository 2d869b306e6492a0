"""Every entry of the data keeps its promise: what it lists as allowed is, and what it lists as asked about asks.

`-k file_name` or `-k 'git and log'` runs a part of them.
"""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from tool_approval.tools.shell.entries import FIELDS, Entries, Kind, Tables, read_tables
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


ROLES = ('flags', *get_args(Kind))
DATA = {name: fields for tables in FILES.values() for name, fields in tables.items()}
FOUND = Entries(read_tables(SOURCES))


def roles(fields):
    """The options of an entry, each with the field that lists it."""
    return [
        (each if len(each) == 2 else each.rstrip('=?'), key) for key in ROLES for each in fields.get(key, '').split()
    ]


@pytest.mark.parametrize('name', DATA)
def test_an_entry_says_each_thing_once(name):
    fields = DATA[name]
    own = dict(roles(fields))
    parents = [dict(roles(DATA[other])) for other in fields.get('like', ())]
    shared = {
        option for at, first in enumerate(parents) for second in parents[at + 1 :] for option in first.keys() & second
    }
    kinds = fields.get('operands', '').removesuffix('*').split()

    assert fields.keys() <= {*FIELDS, *ROLES}
    assert len(own) == len(roles(fields))
    assert all(re.fullmatch(r'-.+|[!(),]', option) for option in own)
    assert all(len({each[option] for each in parents if option in each}) == 1 for option in shared - own.keys())
    assert not any(re.search('..[=?]$', each) for each in fields.get('flags', '').split())
    assert {*kinds} <= {*get_args(Kind)}
    assert 'command' not in kinds[:-1]
    known = {option: kind for each in (*parents, own) for option, kind in each.items()}
    valued = {option for options in fields.get('values', {}) for option in options.split()}
    assert all(known[option] != 'flags' for option in valued)
    listed = {
        each
        for key in ('operands_without_first', 'operands_only_with', 'beyond')
        for each in fields.get(key, '').split()
    }
    assert listed <= {*FOUND.find(name).options, '*'}


def test_a_name_has_one_entry():
    aliases = [
        (f'{name.rpartition(" ")[0]} {alias}'.strip(), name)
        for name, each in DATA.items()
        for alias in each.get('aliases', '').split()
    ]

    assert sum(map(len, FILES.values())) == len(DATA)
    assert len(aliases) == len(dict(aliases))
    assert [(alias, FOUND.find(alias).name) for alias, _ in aliases] == aliases


def test_a_table_alone_says_what_it_says_in_its_file():
    alone = Tables(read_tables(SOURCES))

    assert dict(alone) == DATA
    assert len(alone) == len(DATA)


@pytest.mark.parametrize('file', FILES)
def test_a_file_that_is_cut_off_is_an_error(file, tmp_path):
    """Half of `coreutils.toml` has no `shuf`, so that a default which allows lets `shuf -o x f` run."""
    whole = (SOURCES / f'{file}.toml').read_text()

    for text in ('', whole[:-1], whole[: whole.rindex('\n[')], whole[: len(whole) // 2]):
        (tmp_path / f'{file}.toml').write_text(text)
        with pytest.raises(ValueError, match=rf'{file}\.toml is cut off'):
            read_tables(tmp_path)

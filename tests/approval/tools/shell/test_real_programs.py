"""The entries say of options what the programs on this machine say of them in their own help."""

import tomllib
from pathlib import Path

import pytest
from tool_approval.tools.shell.entries import entries, read_tables

from . import real_programs
from .real_programs import command_of, differences, read_options

SOURCES = Path(__file__).parents[4] / 'tool_approval' / 'tool_approval' / 'tools' / 'shell' / 'programs'
TOLERATED = {
    name: frozenset(options.split())
    for name, options in tomllib.loads(Path(__file__).with_name('real_programs.toml').read_text()).items()
}
NAMES = [name for name in read_tables(SOURCES) if not name.startswith('_') and command_of(name) is not None]
"""Entries of programs that are installed."""


@pytest.mark.thorough
@pytest.mark.parametrize('name', NAMES)
def test_an_entry_says_of_options_what_the_program_says(name):
    wrong, _ = differences(name)

    assert [each for each in wrong if each.split(':')[0] not in TOLERATED.get(name, ())] == []


@pytest.mark.thorough
def test_most_options_of_most_programs_are_compared():
    confirmed = sum(differences(name)[1] for name in NAMES)
    listed = sum(len(entries().find(name).options) for name in NAMES)

    assert len(NAMES) > 100
    assert confirmed > 0.4 * listed


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('  -k, --key=KEYDEF   sort via a key', {'-k': {'required'}, '--key': {'required'}}),
        ('  -F, --color[=WHEN]  colour', {'--color': {'optional'}, '-F': {'optional', 'none'}}),
        (' -n, --noheadings    no headings', {'-n': {'none'}, '--noheadings': {'none'}}),
        (' -o, --output <list> columns', {'-o': {'required'}, '--output': {'required'}}),
        ('    --[no-]abbrev[=<n>]   digits', {'--abbrev': {'optional'}, '--no-abbrev': {'none'}}),
        ('  -d delim\tcontinue until it', {'-d': {'required'}}),
        ('  -amin N -mount -name PATTERN', {'-amin': {'required'}, '-mount': {'none'}, '-name': {'required'}}),
        ('It sorts -k as a word', {}),
    ],
)
def test_options_are_read_from_a_help(text, expected):
    assert read_options(text) == expected


def test_a_wrong_entry_is_found_out(monkeypatch):
    told = '  -n, --lines  lines\n  -q, --quiet=X  no\n  -v, --verbose  yes'
    monkeypatch.setattr(real_programs, 'help_of', lambda name: told)

    wrong, confirmed = differences('head')

    assert [each.split(':')[0] for each in wrong] == ['-q', '--quiet', '-n', '--lines']
    assert confirmed == 2


def test_a_program_that_is_not_installed_is_not_compared():
    assert command_of('no-such-program') is None
    assert differences('no-such-program') is None

"""Trusting a file of a working tree: after seeing what it would allow, and for these bytes alone."""

import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from tool_approval.cli.trust import allowances
from tool_approval.settings import Settings, parse_settings

from tests.tables import table


def is_trusted(tool_approval):
    return tool_approval('check', '--json').json['trusted']


def test_trust_shows_what_the_file_allows_before_the_question(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'default: none\n'
        'tools: {a: {approval: none}, b: {approval: required}, c: {approval: none}}\n'
        'auto_grant: {box: [read, write]}\n'
        'sandbox:\n'
        '  paths:\n'
        '    cache: {root: cache, mode: rw, write_approval: false}\n'
        '    notes: {root: notes, mode: rw, read_approval: true}\n'
        '    above: {root: .., mode: ro, read_approval: true}\n'
        '    far: {root: /usr, mode: rw}\n'
        '  toolchains: [/srv/tools]\n'
        'shell:\n'
        '  network: true\n'
        '  default: {approval: false}\n'
        '  rules:\n'
        '    - {pattern: ls, approval: false}\n'
        '    - {pattern: cat, approval: false, sandbox_paths: [notes]}\n'
        '    - {pattern: rm}\n'
    )

    finished = tool_approval('trust', typed='n', is_terminal=True)

    assert finished.status == 2
    assert finished.out.splitlines() == [
        f'{work}/approvals.yaml would allow:',
        '  - tools that need no approval: `a`, `c`',
        '  - every tool without a rule runs without approval',
        '  - the profile `box` grants these capabilities without approval: read, write',
        '  - commands can read and run everything in /srv/tools',
        f'  - files can be read, written and deleted without approval in {work}/cache (`cache`)',
        f'  - files can be read with approval in {work.parent}, outside of the working directory (`above`)',
        '  - files can be read without approval in /usr, outside of the working directory (`far`)',
        '  - files can be changed with approval in /usr, outside of the working directory (`far`)',
        '  - commands that begin with `ls` run without approval',
        '  - commands that begin with `cat` run without approval, within notes',
        '  - confined commands without a matching rule run without approval',
        '  - commands may use the network',
        'Trust this file as it is now? [y/N] ',
    ]
    assert 'warning: shell.network: commands' in finished.err
    assert not is_trusted(tool_approval)


def test_what_the_presets_of_a_file_allow_is_listed(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'extends: [read-only]\n'
        'shell:\n'
        '  rules:\n'
        '    - {pattern: make, approval: false}\n'
        '    - {pattern: just, approval: false}\n'
    )

    finished = tool_approval('trust', typed='?', is_terminal=True)

    assert finished.out.splitlines()[1:] == [
        f'  - files can be read without approval in {work} (`project`)',
        '  - commands that begin with `make` or `just` run without approval',
        '  - confined commands without a matching rule run without approval',
        'Trust this file as it is now? [y/N] ',
    ]
    assert finished.status == 2


@pytest.mark.parametrize(('typed', 'trusted'), [('y', True), ('Y', True), ('\n', False), ('', False), ('x', False)])
def test_only_a_yes_trusts(tool_approval, typed, trusted):
    finished = tool_approval('trust', typed=typed, is_terminal=True)

    assert finished.status == (0 if trusted else 2)
    assert is_trusted(tool_approval) is trusted


def test_piped_yes_is_not_accepted(tool_approval):
    finished = tool_approval('trust', typed='y\n')

    assert finished.status == 2
    assert 'without a terminal, the command cannot ask' in finished.err
    assert not is_trusted(tool_approval)


def test_trust_by_option_lasts_until_the_file_changes(tool_approval, work):
    first, second = tool_approval('trust', '--yes'), tool_approval('trust')
    trusted = is_trusted(tool_approval)
    with open(work / 'approvals.yaml', 'a') as file:
        file.write('\n')

    assert (first.status, second.status, trusted) == (0, 0, True)
    assert 'is trusted already' in second.out
    assert not is_trusted(tool_approval)


def test_a_file_with_mistakes_is_not_trusted(tool_approval, work):
    (work / 'approvals.yaml').write_text('tols: {}')

    finished = tool_approval('trust', '--yes')

    assert finished.status == 2
    assert 'did you mean `tools`?' in finished.err
    assert 'correct its errors first' in finished.err


def test_file_that_only_tightens_allows_nothing_beyond_the_defaults(tool_approval, work):
    (work / 'approvals.yaml').write_text('mode: strict')

    assert '  - nothing beyond the defaults\n' in tool_approval('trust', '--yes').out


def test_a_case_that_blocks_allows_nothing_beyond_the_defaults(tool_approval, work):
    cases = '[{when: {path: {matches: "/etc/*"}}, approval: blocked}]'
    (work / 'approvals.yaml').write_text(f'tools: {{x: {{approval: required, cases: {cases}}}}}')

    assert '  - nothing beyond the defaults\n' in tool_approval('trust', '--yes').out


def test_trust_of_a_deleted_file_can_be_revoked(tool_approval, work):
    tool_approval('trust', '--yes')
    text = (work / 'approvals.yaml').read_text()
    (work / 'approvals.yaml').unlink()

    nowhere, named, again = (
        tool_approval('trust', '--revoke', *file) for file in ([], ['approvals.yaml'], ['approvals.yaml'])
    )

    (work / 'approvals.yaml').write_text(text)
    assert (nowhere.status, named.status, again.status) == (2, 0, 0)
    assert named.out == 'approvals.yaml is not trusted any more\n'
    assert again.out == 'approvals.yaml was not trusted\n'
    assert not is_trusted(tool_approval)


KEYS = tomllib.loads(Path(__file__).with_name('keys.toml').read_text())


def fields_of(model, prefix=''):
    """The names of all that a document may say, with dots."""
    for name, field in model.model_fields.items():
        inner = list(models_in(field.annotation))
        if not inner:
            yield f'{prefix}{name}'
        for each in inner:
            yield from fields_of(each, f'{prefix}{name}.')


def models_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from models_in(each)


def test_every_key_of_a_file_is_listed_or_harmless():
    assert sorted(fields_of(Settings)) == sorted([*KEYS['listed'], *KEYS['harmless']])


@table('key, document, listed', [(key, *listed) for key, listed in KEYS['listed'].items()])
def test_trust_lists_what_each_key_loosens_or_adds_to_questions(tmp_path, key, document, listed):
    assert allowances(Settings(), tmp_path) == []
    assert listed in '\n'.join(allowances(parse_settings(document), tmp_path))

"""Trusting a file of a working tree: after seeing what it would allow, and for these bytes alone."""

import pytest


def is_trusted(tool_approval):
    return tool_approval('check', '--json').json['trusted']


def test_it_shows_what_the_file_would_allow_before_it_asks(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'default: none\n'
        'tools: {a: {approval: none}, b: {approval: required}}\n'
        'auto_grant: {box: [read, write]}\n'
        'sandbox:\n'
        '  paths:\n'
        '    cache: {root: cache, mode: rw, write_approval: false}\n'
        '    notes: {root: notes, mode: rw, read_approval: true}\n'
        '    above: {root: .., mode: ro, read_approval: true}\n'
        '    far: {root: /usr, mode: rw}\n'
        'shell:\n'
        '  network: true\n'
        '  default: {approval: false}\n'
        '  rules: [{pattern: ls, approval: false}, {pattern: cat, approval: false, sandbox_paths: [notes]}, {pattern: rm}]\n'
    )

    finished = tool_approval('trust', typed='n\n', is_terminal=True)

    assert finished.status == 2
    assert finished.out.splitlines() == [
        f'{work}/approvals.yaml would allow:',
        '  - the tool `a` runs unasked',
        '  - every other tool of which nothing is said runs unasked',
        '  - in the profile `box` is granted unasked: read, write',
        f'  - files are read unasked in {work}/cache (`cache`)',
        f'  - files are written and deleted unasked in {work}/cache (`cache`)',
        f'  - files can be read, if somebody consents, in {work.parent}, outside of the working directory (`above`)',
        '  - files are read unasked in /usr, outside of the working directory (`far`)',
        '  - files can be changed, if somebody consents, in /usr, outside of the working directory (`far`)',
        '  - commands that begin with `ls` run unasked',
        '  - commands that begin with `cat` run unasked, within notes',
        '  - every command that no rule is about runs unasked',
        '  - commands may use the network',
        'Trust this file as it is now? [y/N] ',
    ]
    assert 'warning: shell.default: every command' in finished.err
    assert not is_trusted(tool_approval)


@pytest.mark.parametrize(
    ('typed', 'trusted'), [('y\n', True), ('YES\n', True), ('\n', False), ('', False), ('x\n', False)]
)
def test_only_a_yes_trusts(tool_approval, typed, trusted):
    finished = tool_approval('trust', typed=typed, is_terminal=True)

    assert finished.status == (0 if trusted else 2)
    assert is_trusted(tool_approval) is trusted


def test_a_yes_that_is_piped_in_is_none(tool_approval):
    finished = tool_approval('trust', typed='y\n')

    assert finished.status == 2
    assert 'nobody can be asked here' in finished.err
    assert not is_trusted(tool_approval)


def test_yes_on_the_command_line_is_one_until_the_file_changes(tool_approval, work):
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
    assert 'correct it first' in finished.err


def test_one_that_only_tightens_is_said_to_allow_nothing(tool_approval, work):
    (work / 'approvals.yaml').write_text('mode: strict')

    assert '  - nothing beyond the defaults\n' in tool_approval('trust', '--yes').out


def test_trust_is_taken_back_also_from_a_file_that_is_gone(tool_approval, work):
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

"""`check` finds mistakes and probable mistakes."""

import json
import sys
from pathlib import Path

import pytest

from tests.cases import rows
from tests.tables import table

CASES = Path(__file__).with_name('check.toml')


def check(tool_approval, work, text, *arguments):
    (work / 'approvals.yaml').write_text(text)
    return tool_approval('check', '--json', *arguments)


def warnings(finished):
    return [(each['key'], each['line']) for each in finished.json['findings'] if each['level'] == 'warning']


def test_valid_settings_have_no_findings(tool_approval):
    finished = tool_approval('check')

    assert finished.status == 0
    assert finished.out.endswith('0 errors, 0 warnings\n')
    assert 'the file is not trusted (the user has not trusted the file)' in finished.out


@table('why, text, key, line, message', rows(CASES, 'mistakes'))
def test_a_mistake_has_its_key_and_line(tool_approval, work, why, text, key, line, message):
    finished = check(tool_approval, work, text)

    [found] = [each for each in finished.json['findings'] if each['level'] == 'error']
    assert finished.status == 2
    assert finished.json['ok'] is False
    assert (found['key'] or '').startswith(key)
    assert found['line'] == line
    assert message in found['message']


def test_a_mistake_is_printed_with_its_place(tool_approval, work):
    (work / 'approvals.yaml').write_text('shell:\n  rules:\n    - {pattern: ls, match: [cat]}\n')

    finished = tool_approval('check')

    assert finished.out == (
        'error: approvals.yaml:3: shell.rules.0.match: the rule does not apply to `cat`\n1 error, 0 warnings\n'
    )


@table('why, text, key, message', rows(CASES, 'warnings'))
def test_probable_mistake_is_a_warning(tool_approval, work, why, text, key, message):
    finished = check(tool_approval, work, text)

    found = [each for each in finished.json['findings'] if each['level'] == 'warning' and each['key'] == key]
    assert finished.status == 0
    assert finished.json['ok'] is True
    assert any(message in each['message'] for each in found), finished.json['findings']
    assert {each['line'] for each in found} == {len(text.splitlines())}


@table('why, text', rows(CASES, 'meant'))
def test_settings_that_may_be_meant_have_no_warning(tool_approval, work, why, text):
    assert warnings(check(tool_approval, work, text)) == []


def test_note_names_a_root_inside_another(tool_approval, work):
    finished = check(tool_approval, work, 'sandbox: {paths: {all: {root: .}, notes: {root: notes}}}')

    [note] = [each for each in finished.json['findings'] if each['level'] == 'note' and each['key']]
    assert note['key'] == 'sandbox.paths.notes.root'
    assert 'this root is inside the root `all`' in note['message']


def test_file_outside_the_directory_is_printed_with_its_whole_path(tool_approval, work):
    (work / 'notes/approvals.yaml').write_text('tools: {x: {}}')

    finished = tool_approval('check', 'notes/approvals.yaml')

    assert finished.out.startswith(f'warning: {work}/notes/approvals.yaml:1: tools.x: the rule has no effect')


def test_strict_check_fails_on_warnings(tool_approval, work):
    assert check(tool_approval, work, 'tools: {x: {}}', '--strict').status == 1
    assert check(tool_approval, work, '{}', '--strict').status == 0


def test_file_is_checked_for_the_given_directory(tool_approval, work):
    (work / 'other.yaml').write_text('sandbox:\n  paths: {notes: {root: sub}}\n')

    finished = tool_approval('check', 'other.yaml', '--cwd', 'notes', '--json')

    assert finished.json['source'] == str(work / 'other.yaml')
    assert warnings(finished) == [('sandbox.paths.notes.root', 2)]


def test_check_without_a_file_is_an_error(tool_approval, work):
    (work / 'approvals.yaml').unlink()

    finished = tool_approval('check')

    assert finished.status == 2
    assert 'there is no approvals.yaml in' in finished.err


def test_missing_library_for_a_check_is_an_error(tool_approval, work, monkeypatch):
    from tool_approval import MissingExtraError

    def lacking(*arguments, **others):
        raise MissingExtraError('tree_sitter', extra='shell')

    monkeypatch.setattr('tool_approval.cli.judging.CallJudge.__init__', lacking)

    finished = check(tool_approval, work, '{}')

    assert finished.status == 2
    assert './tool_approval[shell]' in json.dumps(finished.json['findings'])


def test_missing_yaml_library_is_a_failure(tool_approval, monkeypatch):
    monkeypatch.delitem(sys.modules, 'tool_approval.core.config_yaml', raising=False)
    monkeypatch.setitem(sys.modules, 'yaml', None)

    finished = tool_approval('check')

    assert (finished.status, finished.out) == (2, '')
    assert './tool_approval[yaml]' in finished.err


@pytest.mark.parametrize(
    'words', [['check'], ['trust', '--yes'], ['explain', 'x'], ['explain', 'x', '--config', 'approvals.toml']]
)
def test_every_command_says_what_to_do_about_a_file_in_toml(tool_approval, work, words):
    (work / 'approvals.yaml').rename(work / 'approvals.toml')

    finished = tool_approval(*words)

    assert finished.status == 2
    assert 'write the same keys as YAML into `approvals.yaml` instead' in finished.out + finished.err


def test_similar_findings_are_printed_together(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'shell:\n'
        '  rules:\n'
        '    - {pattern: make, approval: false}\n'
        '    - {pattern: ours, approval: false}\n'
        '    - {pattern: pytest, approval: false}\n'
        '    - {pattern: theirs, approval: false}\n'
        '    - {pattern: npm test, approval: false}\n'
    )

    finished = tool_approval('check')

    shown = finished.out.splitlines()
    assert shown[0].startswith('warning: approvals.yaml:3: shell.rules.0: `make` runs files that an agent may have')
    assert shown[1] == '  the same applies to `pytest` (line 5), `npm test` (line 7)'
    assert shown[2].startswith('note: approvals.yaml:4: shell.rules.1: `ours` is an unknown program; ')
    assert shown[3] == '  the same applies to `theirs` (line 6), `npm` (line 7)'
    assert '0 errors, 3 warnings' in finished.out


@pytest.mark.parametrize('key', ['hidden', 'visible'])
@table('why, glob, said', rows(CASES, 'globs'))
def test_glob_that_matches_nothing_is_a_warning(tool_approval, work, key, why, glob, said):
    finished = check(tool_approval, work, f'sandbox: {{{key}: ["*.x", "{glob}"]}}')

    found = [(each['key'], each['message']) for each in finished.json['findings'] if 'sandbox' in (each['key'] or '')]
    assert found == ([] if not said else [(f'sandbox.{key}.1', f'`{glob}`: {said}')])


@table('why, rules, said', rows(CASES, 'fails'))
def test_note_names_rules_whose_commands_ask_nevertheless(tool_approval, work, why, rules, said):
    finished = check(tool_approval, work, f'shell: {{rules: {rules}}}')

    found = [each['message'] for each in finished.json['findings'] if ' asks if it ' in each['message']]
    assert [message[: len(wanted)] for message, wanted in zip(found, said, strict=True)] == said


def test_rule_for_a_command_that_only_reads_has_no_finding(tool_approval, work):
    rules = '[{pattern: git log --oneline, approval: false}, {pattern: sort -u, approval: false}]'

    finished = check(tool_approval, work, f'shell: {{rules: {rules}}}')

    assert [each['message'] for each in finished.json['findings'] if each['key'] is not None] == []


def test_a_rule_beside_one_whose_strictest_case_does_not_always_apply_has_no_finding(tool_approval, work):
    cases = '[{when: {path: {matches: "/etc/*"}}, approval: blocked}]'

    finished = check(
        tool_approval, work, f'tools: {{"*": {{approval: required, cases: {cases}}}, x: {{approval: none}}}}'
    )

    assert warnings(finished) == []


def test_note_suggests_presets_if_the_file_has_none(tool_approval, work):
    without, within = (check(tool_approval, work, text) for text in ('{}', 'extends: [read-only]'))

    hints = [
        [each['message'] for each in finished.json['findings'] if 'extends no preset' in each['message']]
        for finished in (without, within)
    ]
    hint = 'with `extends: [default]`, commands in the OS sandbox run without approval'
    assert hints == [[f'the file extends no preset; {hint}'], []]


def test_commands_that_may_run_outside_of_the_sandbox_are_named(tool_approval, work):
    (work / 'approvals.yaml').write_text('shell: {host: [git push, npm]}')

    shown = tool_approval('check').out

    assert 'note: approvals.yaml:1: shell.host.0: `git push` may run outside of the OS sandbox, as you' in shown
    assert 'warning: approvals.yaml:1: shell.host.1: `npm` runs files that an agent may have written' in shown


def test_an_entry_for_approvers_that_no_rule_names_is_reported(tool_approval, work):
    text = (
        'approvers:\n  a: {users: [x], escalate: {after: 1h, to: b}}\n  b: {users: [y]}\n  c: {users: [z]}\n'
        'tools:\n  t: {approvers: a}\n'
    )

    finished = check(tool_approval, work, text)

    found = [(each['key'], each['line']) for each in finished.json['findings'] if each['level'] == 'warning']
    assert found == [('approvers.c', 4)]

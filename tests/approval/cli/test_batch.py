"""Batches: one answer for each line, whatever the line is."""

import io
import json
import os
from pathlib import Path

from tool_approval.cli.explain import LONGEST_LINE, explain_lines
from tool_approval.cli.judging import Configurations
from tool_approval.os_sandbox import UnconfinedBackend, choose_backend

from tests.cases import rows
from tests.corpus import paths, shell
from tests.tables import table


def line(**given):
    return json.dumps(given)


def batch(tool_approval, *lines, arguments=()):
    finished = tool_approval('explain', '--batch', '-', *arguments, typed='\n'.join(lines) + '\n')
    assert finished.status == 0
    return finished.lines


def test_every_line_is_answered_in_order(tool_approval):
    answers = batch(
        tool_approval,
        line(id=1, tool='shell', args={'command': 'git status'}),
        line(id='two', tool='write_file', args={'path': 'notes/a.txt', 'content': 'x'}),
        line(id=None, tool='delete_user', args={}),
    )

    assert [list(answer) for answer in answers] == [['id', 'decision', 'rule', 'parts']] * 3
    assert [(each['id'], each['decision']) for each in answers] == [(1, 'allow'), ('two', 'ask'), (None, 'block')]


@table(
    'why, given, problem',
    [
        *rows(Path(__file__).with_name('lines.toml'), 'lines'),
        ('the JSON is nested too deeply', '[' * 100_000, 'nested too deeply'),
        ('the JSON is nested too deeply', '{"id": ' + '[' * 100_000, 'nested too deeply'),
        ('the number is too long', '{"id": 1' + '0' * 5000 + '}', 'not JSON'),
        ('the name of the tool is too long', line(id=1, tool='x' * 201, args={}), '`tool` has to be'),
        ('the line is too long', 'x' * (LONGEST_LINE + 7), 'longer than'),
    ],
)
def test_a_line_that_cannot_be_judged_is_an_error_and_the_next_is_judged(tool_approval, why, given, problem):
    wrong, right = batch(tool_approval, given, line(id='next', tool='send_notification', args={}))

    assert wrong['decision'] == 'error'
    assert problem in wrong['error']
    assert wrong['id'] == (1 if given.startswith('{"id": 1,') and given.count('"id"') == 1 else None)
    assert (right['id'], right['decision']) == ('next', 'allow')


def test_line_of_a_batch_that_is_not_utf8_is_an_error(tool_approval):
    finished = tool_approval('explain', '--batch', '-', typed=b'\xff\xfe\n')

    assert finished.lines[0]['error'] == 'the line is not UTF-8'


def test_unexpected_failure_affects_only_its_line(tool_approval, monkeypatch):
    monkeypatch.setattr('tool_approval.cli.explain.read_call', lambda tool, args: 1 / 0)

    [answer] = batch(tool_approval, line(id=3, tool='x', args={}))

    assert (answer['id'], answer['decision']) == (3, 'error')
    assert 'ZeroDivisionError' in answer['error']


def test_unrelated_keys_of_a_line_are_ignored(tool_approval):
    [answer] = batch(tool_approval, line(id=1, tool='send_notification', args={}, expect='allow', why='x'))

    assert answer['decision'] == 'allow'


def test_last_line_needs_no_line_end_and_may_be_too_long(tool_approval):
    finished = tool_approval('explain', '--batch', '-', typed='{}\n' + 'x' * (3 * LONGEST_LINE))

    assert [answer['decision'] for answer in finished.lines] == ['error', 'error']


def test_line_may_have_its_own_settings_and_directory(tool_approval, work):
    os.makedirs(work / 'sub/inner')
    config = {'sandbox': {'paths': {'inner': {'root': 'inner', 'mode': 'rw', 'write_approval': False}}}}
    call = {'tool': 'write_file', 'args': {'path': 'inner/x'}}

    answers = batch(
        tool_approval,
        line(id=1, **call, config=config, cwd='sub'),
        line(id=2, **call, config=config, cwd=str(work / 'sub')),
        line(id=3, **call, config=config),
        line(id=4, **call, cwd='sub'),
        line(id=5, **call),
    )

    # In `sub` there is no configuration, and in the file no root around `inner`.
    assert [answer['decision'] for answer in answers] == ['allow', 'allow', 'allow', 'ask', 'block']


def test_batch_file_is_judged_by_the_named_settings(tool_approval, work):
    (work / 'calls.jsonl').write_text(line(id=1, tool='read_file', args={'path': 'notes/a.txt'}) + '\n')
    (work / 'other.yaml').write_text('{}')

    finished = tool_approval('explain', '--batch', 'calls.jsonl', '--config', 'other.yaml')

    assert [answer['decision'] for answer in finished.lines] == ['ask']


def test_untrusted_file_is_reported_once_per_batch(tool_approval):
    finished = tool_approval('explain', '--batch', '-', typed=(line(id=1, tool='x', args={}) + '\n') * 3)

    assert finished.err.count('is not trusted') == 1


def test_root_replaced_between_two_lines_is_read_again(work):
    config = {'sandbox': {'paths': {'late': {'root': 'late'}}}}
    text = line(id=1, tool='read_file', args={'path': 'late/x'}, config=config).encode() + b'\n'
    answers = explain_lines(io.BytesIO(text * 3), Configurations(None, print), None)

    decisions = [next(answers)['decision']]
    (work / 'late').mkdir()
    decisions.append(next(answers)['decision'])
    (work / 'late').rename(work / 'old')
    (work / 'late').mkdir()
    decisions.append(next(answers)['decision'])

    assert decisions == ['allow', 'allow', 'allow']


def is_for_access_alone(answer):
    return answer['decision'] == 'ask' and [
        part['kind'] for part in answer['parts'] if part['decision'] != 'allow'
    ] == ['access']


def test_the_sample_commands_are_decided_as_expected(tool_approval):
    lines = [
        line(
            id=row['id'],
            tool='shell',
            args={'command': row['command']},
            config={
                'shell': {'rules': row['rules'], 'default': row['default']},
                **({'sandbox': row['sandbox']} if 'sandbox' in row else {}),
            },
        )
        for row in shell.ROWS
    ]

    answers = batch(tool_approval, *lines)
    # Where the OS sandbox works, a command that no rule asks about may need more access.
    decided = {each['id']: 'allow' if is_for_access_alone(each) else each['decision'] for each in answers}

    expected = {row['id']: shell.decide(row).decision for row in shell.ROWS}
    wrong = {row['id'] for row in shell.ROWS if decided[row['id']] not in row['acceptable']}
    if isinstance(choose_backend(require=False), UnconfinedBackend):
        # Without an OS sandbox, the default asks, whatever the settings say.
        is_open = {row['id'] for row in shell.ROWS if row['default'].get('approval') is False}
        stricter = {key for key in is_open if (decided[key], expected[key]) == ('ask', 'allow')}
        wrong -= stricter
        decided |= dict.fromkeys(stricter, 'allow')
    assert wrong == set()
    assert decided == expected


def test_the_sample_paths_are_decided_as_expected(tool_approval, tmp_path):
    base, cases = paths.load()
    lines = []
    for case in cases:
        top = tmp_path.resolve() / case['id']
        top.mkdir()
        paths.make_world(top)
        paths.run_lines(case['setup'], top)
        places = {key: case[key].replace('{T}', str(top)) for key in ('path', 'dest') if key in case}
        config = {'sandbox': base if case['sandbox'] == 'BASE' else case['sandbox']}
        tool = paths.OPERATIONS.get(case['op'])
        if tool is not None:  # there are cases for tools that make links, and there are no such tools
            lines.append((case, line(id=case['id'], tool=tool, args=places, config=config, cwd=str(top / 'ws'))))

    answers = batch(tool_approval, *(text for _, text in lines))

    wrong = [
        (case['id'], answer['decision'], case['acceptable'])
        for (case, _), answer in zip(lines, answers, strict=True)
        if answer['decision'] not in case['acceptable']
    ]
    assert wrong == []

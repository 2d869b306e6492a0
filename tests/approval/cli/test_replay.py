"""What other rules would have decided about logged calls, and when that is an error for CI."""

import asyncio

import pytest
from tool_approval.audit import JsonlAuditSink, load_key
from tool_approval.testing import ScriptedUI

from tool_approval import ApprovalController, ApprovalRequest

from .records import Record


@pytest.fixture
def record(tmp_path):
    (tmp_path / 'log').mkdir()
    made = Record(tmp_path / 'log')
    yield made
    made.sink.close()


@pytest.fixture
def replay(tool_approval, record, work):
    def run(settings, *options):
        (work / 'new.yaml').write_text(settings)
        return tool_approval('replay', *record.options, '--settings', 'new.yaml', *options)

    return run


def test_changes_are_shown_once_with_their_number_and_summed_up(replay, record):
    record.asked('send', {'to': 'bob'}, times=3)
    record.asked('send', {'to': 'bob'}, False)
    record.asked('send', {'to': 'eve'})
    record.unasked('look', {})
    record.blocked('drop', {})

    finished = replay('tools: {send: {cases: [{when: {to: {is: bob}}, approval: none}]}, drop: {approval: blocked}}')

    assert finished.status == 0
    assert finished.out.splitlines() == [
        '     3x  ask (approved) -> allow  (newly unasked)  send {"to":"bob"}',
        '     1x  ask (denied) -> allow  (newly unasked)  send {"to":"bob"}',
        '     1x  allow -> ask  look {}',
        '7 calls: 2 decided as before, 4 would newly run unasked, 0 not judged',
    ]


def test_a_log_of_the_real_controller_is_replayed(tool_approval, work, tmp_path):
    sink = JsonlAuditSink(tmp_path / 'real.jsonl', key=load_key(tmp_path / 'real.key'))
    controller = ApprovalController(ui=ScriptedUI([True]), audit=sink)
    asyncio.run(controller.request_approval(ApprovalRequest(tool_name='ping', args={'host': 'db1'})))
    sink.close()

    finished = tool_approval('replay', str(tmp_path / 'real.jsonl'), '--key', str(tmp_path / 'real.key'))

    assert finished.out == '1 calls: 1 decided as before, 0 would newly run unasked, 0 not judged\n'


def test_the_strictest_case_decides_only_about_calls_that_are_not_known_better(replay, record):
    record.asked('send', {'to': 'bob'})
    record.asked('send', {'to': 'eve'})
    record.asked('send', {})
    record.asked('send', None)

    out = replay('tools: {send: {cases: [{when: {to: {is: bob}}, approval: required}], approval: blocked}}').out

    assert out.splitlines() == [
        '     1x  ask (approved) -> block  send {"to":"eve"}',
        '     1x  ask (approved) -> block  send {}',
        '     1x  ask (approved) -> unknown  send -',
        '4 calls: 1 decided as before, 0 would newly run unasked, 1 not judged',
    ]


@pytest.mark.parametrize(
    ('add', 'status'),
    [
        (lambda record: record.asked('send', {}), 1),
        (lambda record: record.asked('send', {}, False), 1),
        (lambda record: record.asked('send', {}, how='memory'), 1),
        (lambda record: record.blocked('send', {}), 1),
        (lambda record: record.open('send', {}), 1),
        (lambda record: record.unasked('send', {}), 0),
        (lambda record: record.asked('mail', {}), 0),
        (lambda record: record.unasked('drop', {}), 0),
        (lambda record: record.asked('send', None), 1),
        (lambda record: record.asked('run_shell', {}), 1),
        (lambda record: record.asked('drop', None), 0),
        (lambda record: record.write({'event': 'other'}), 0),
    ],
)
def test_new_access_is_an_error_if_asked_for(replay, record, add, status):
    add(record)
    settings = 'tools: {send: {approval: none}, drop: {approval: blocked}}'

    assert replay(settings, '--no-new-access').status == status
    assert replay(settings).status == 0


BOTH = [{'groups': ['leads', 'ops'], 'count': 2}]


@pytest.mark.parametrize(
    ('then', 'now', 'is_looser'),
    [
        (BOTH, 'groups: [leads, ops], count: 2', False),
        (BOTH, 'groups: [leads], count: 3', False),
        (BOTH, 'groups: [leads, ops], count: 1', True),
        (BOTH, 'groups: [leads, ops, all], count: 2', True),
        (BOTH, 'groups: [leads], users: [eve], count: 2', True),
        (BOTH, None, True),
        ([*BOTH, {'users': ['ada']}], 'groups: [leads, ops], count: 2', True),
        ([{'no': 'rule'}], 'users: [ada]', True),
        (None, 'users: [ada]', False),
        ('no list', 'users: [ada]', False),
    ],
)
def test_access_is_new_if_other_or_fewer_people_may_give_it(replay, record, then, now, is_looser):
    more = {} if then is None else {'approvers': then}
    record.asked('send', {}, **more)
    who = '' if now is None else ', approvers: both}}\napprovers: {both: {' + now
    settings = 'tools: {send: {approval: required' + who + '}}'

    finished = replay(settings, '--no-new-access')

    assert finished.status == is_looser
    assert ('ask (approved) -> ask  (other approvers suffice)  send {}' in finished.out) is is_looser
    assert ('for 1 of these, other or fewer people' in finished.out) is is_looser
    assert replay(settings).status == 0


def test_a_command_that_needs_access_is_asked_about_on_every_machine(replay, record):
    record.asked('run_shell', {'command': 'touch x'})
    record.asked('run_shell', {'command': 'awk 1 x'})

    out = replay('extends: [default]\n').out

    assert out.splitlines() == [
        '     1x  ask (approved) -> allow  (newly unasked)  run_shell {"command":"awk 1 x"}',
        '2 calls: 1 decided as before, 1 would newly run unasked, 0 not judged',
    ]


def test_texts_of_the_log_cannot_control_the_terminal(replay, record):
    record.asked('a\x1b[2J\nb', {'x': '\u202e'})

    out = replay('default: none').out

    assert '\x1b' not in out
    assert '\u202e' not in out
    assert out.count('\n') == 2


@pytest.mark.parametrize('is_named', [True, False])
def test_a_damaged_log_fails(replay, tool_approval, record, work, is_named):
    record.asked('mail', {})
    record.path.write_bytes(record.path.read_bytes() + b'\xff{\n')
    options = ('--key', str(record.key_path)) if is_named else ()

    finished = tool_approval('replay', str(record.path), *options, '--no-new-access')

    assert finished.status == (2 if is_named else 1)
    if not is_named:
        assert finished.out.endswith('1 lines of the log cannot be read\n')
        assert 'the log was not verified' in finished.err


def test_without_settings_there_is_nothing_to_replay(tool_approval, record, work):
    (work / 'approvals.yaml').unlink()

    finished = tool_approval('replay', *record.options)

    assert finished.status == 2
    assert 'there is no approvals.yaml' in finished.err


def test_half_a_character_in_a_log_stops_no_replay(tool_approval, work):
    entry = r'{"event": "decision", "tool_name": "t", "payload": {"a": "\ud800"}, "approved": true, "how": "person"}'
    (work / 'log.jsonl').write_text(f'{entry}\n')

    finished = tool_approval('replay', 'log.jsonl', '--no-new-access')

    assert finished.out.splitlines() == [
        r'     1x  ask (approved) -> block  t {"a": "\ud800"}',
        '1 calls: 0 decided as before, 0 would newly run unasked, 0 not judged',
    ]

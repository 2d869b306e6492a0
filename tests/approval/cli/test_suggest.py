"""Rules that the log suggests: which, with what evidence, and how they get into the settings file."""

import asyncio
import json

import pytest
from inline_snapshot import snapshot
from tool_approval.audit import JsonlAuditSink, load_key
from tool_approval.cli.proposals import MOST
from tool_approval.cli.replay import settings_in
from tool_approval.settings import TrustStore, load_settings, trust_settings
from tool_approval.testing import ScriptedUI

from tool_approval import ApprovalController, ApprovalRequest

from .records import Record

SETTINGS = """\
# Written by hand.
tools:
  pay: {approval: required}  # always
  "drop_*": {approval: required}

# Folders.
sandbox:
  paths:
    project: {root: ., mode: rw, write_approval: true, read_approval: true}
"""


@pytest.fixture
def record(tmp_path):
    (tmp_path / 'log').mkdir()
    made = Record(tmp_path / 'log')
    yield made
    made.sink.close()


@pytest.fixture
def settings(work):
    (work / 'docs/api').mkdir(parents=True)
    (work / 'approvals.yaml').write_text(SETTINGS)
    return work / 'approvals.yaml'


@pytest.fixture
def suggest(tool_approval, record, settings):
    def run(*options, **more):
        return tool_approval('suggest', *record.options, *options, **more)

    return run


def test_a_call_that_was_always_approved_becomes_a_rule_with_its_evidence(suggest, record):
    record.asked('send_mail', {'to': 'bob', 'urgent': False}, times=6)
    for number in range(4):
        record.asked('send_mail', {'to': 'eve', 'urgent': False}, answered_s=number)

    finished = suggest()

    assert finished.status == 0
    assert finished.out == snapshot("""\
# approved 10 times on 2 days, never denied; 2 of the answers took less than 2 s
# newly runs unasked: calls of `send_mail` with `to` one of "bob", "eve", `urgent` false, and with any other arguments
tools:
  send_mail: {cases: [{when: {to: {in: [bob, eve]}, urgent: {is: false}}, approval: none}]}

""")


def test_a_log_of_the_real_controller_suggests_the_same(tool_approval, settings, tmp_path):
    sink = JsonlAuditSink(tmp_path / 'real.jsonl', key=load_key(tmp_path / 'real.key'))
    controller = ApprovalController(ui=ScriptedUI([True] * 5), audit=sink)
    for _ in range(5):
        asyncio.run(controller.request_approval(ApprovalRequest(tool_name='ping', args={'host': 'db1'})))
    sink.close()

    finished = tool_approval('suggest', str(tmp_path / 'real.jsonl'), '--key', str(tmp_path / 'real.key'))

    assert 'ping: {cases: [{when: {host: {is: db1}}, approval: none}]}' in finished.out


def test_numbers_are_limited_to_those_that_were_approved_and_many_texts_are_free(suggest, record):
    for number in range(6):
        record.asked('note', {'text': f'Text {number}', 'lines': number + 1})

    out = suggest().out

    assert 'note: {cases: [{when: {lines: {at_least: 1, at_most: 6}}, approval: none}]}' in out
    assert 'calls of `note` with `lines` from 1 to 6, and with any `text`, and any other arguments' in out


def test_calls_without_limits_become_a_rule_for_the_tool(suggest, record):
    for number in range(6):
        record.asked('search', {'query': f'Text {number}'})

    out = suggest().out

    assert 'search: {approval: none}' in out
    assert 'every call of `search`, with any `query`, and any other arguments' in out


def test_an_argument_that_only_other_calls_have_must_be_absent(suggest, record):
    record.asked('send_mail', {'to': 'bob'}, times=6)
    record.asked('send_mail', {'to': 'bob', 'cc': 'eve'}, False)

    assert '{when: {cc: {present: false}, to: {is: bob}}, approval: none}' in suggest().out


def test_calls_with_different_arguments_become_cases(suggest, record):
    record.asked('send_mail', {'to': 'bob', 'cc': 'eve'}, times=5)
    record.asked('send_mail', {'to': 'bob'}, times=5)

    out = suggest().out

    assert out.count('send_mail:') == 1
    assert '{when: {cc: {is: eve}, to: {is: bob}}, approval: none}' in out
    assert '{when: {cc: {present: false}, to: {is: bob}}, approval: none}' in out


@pytest.mark.parametrize(
    'against',
    [
        lambda record: record.asked('send_mail', {'to': 'bob'}, False),
        lambda record: record.asked('send_mail', {'to': 'bob'}, has_changed_arguments=True),
        lambda record: record.asked('send_mail', {'to': 'bob'}, False, response='done'),
        lambda record: record.asked('send_mail', {'to': 'bob'}, False, how='timeout', decided_by=['timeout']),
        lambda record: record.blocked('send_mail', {'to': 'bob'}),
        lambda record: record.asked('send_mail', {'to': '[redacted]'}, False),
        lambda record: record.asked('send_mail', {'to': '[hidden]'}, False),
        lambda record: record.asked('send_mail', None, False),
    ],
)
def test_nothing_is_proposed_that_would_run_a_call_that_was_refused(suggest, record, against):
    record.asked('send_mail', {'to': 'bob'}, times=9)
    assert 'send_mail' in suggest().out
    against(record)

    assert suggest().out == 'no rule is proposed\n'


def test_a_refused_call_that_the_rule_does_not_cover_is_no_reason_against_it(suggest, record):
    record.asked('send_mail', {'to': 'bob'}, times=9)
    record.unasked('send_mail', {'to': 'bob'})
    record.asked('send_mail', {'to': 'eve'}, False)

    assert 'to: {is: bob}' in suggest().out


@pytest.mark.parametrize(
    'how',
    [
        {'how': 'memory'},
        {'how': 'mode', 'decided_by': ['mode']},
        {'how': None},
        {'settings_digest': 'of another project'},
    ],
)
def test_only_what_a_person_approved_here_is_evidence(suggest, record, how):
    record.asked('send_mail', {'to': 'bob'}, times=9, **how)

    assert suggest().out == 'no rule is proposed\n'


def test_calls_with_former_settings_of_the_file_are_evidence(suggest, record, settings):
    record.settings(settings, 'former')
    record.asked('send_mail', {'to': 'bob'}, times=9, settings_digest='former')

    assert 'send_mail' in suggest().out


def test_four_approvals_are_too_few(suggest, record):
    record.asked('send_mail', {'to': 'bob'}, times=4)

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize('tool', ['pay', 'drop_table'])
def test_a_rule_that_a_person_wrote_stays_as_it_is(suggest, record, tool):
    record.asked(tool, {'to': 'bob'}, times=9)

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize(
    ('tool', 'payload'),
    [
        ('python_exec', {'text': 'x'}),
        ('check', {'code': 'x'}),
        ('runCode', {'text': 'x'}),
        ('HTTPExec', {'text': 'x'}),
        ('query', {'sql': 'select 1'}),
        ('save', {'name': '/etc/passwd'}),
        ('save', {'name': '../x'}),
        ('save', {'name': '~/x'}),
        ('save', {'name': 'C:\\x'}),
        ('send', {'to': ['bob']}),
        ('send', {'to': {'name': 'bob'}}),
        ('write_file', {'path': '.github/a.yml', 'content': ''}),
        ('write_file', {'path': 'a b/a.yml', 'content': ''}),
        ('write_file', {'path': 'a.txt', 'content': ''}),
        ('write_file', {'path': '../out/a.txt', 'content': ''}),
        ('read_file', {'path': 'docs/.env'}),
        ('move', {'path': 'docs/a', 'dest': 'docs/b'}),
    ],
)
def test_what_runs_code_or_may_write_elsewhere_is_not_proposed(suggest, record, tool, payload):
    record.asked(tool, payload, times=9)

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize(
    'payload',
    [
        {'command': 'pytest'},
        {'command': 'make'},
        {'command': 'bash x.sh'},
        {'command': './run.sh'},
        {'command': 'unknown'},
        {'command': 'touch x'},
        {'command': 'python3 -c pass'},
        {'command': 'curl https://else.example'},
        {'command': 'pip install x', 'access': ['network']},
        {'command': 'git push', 'access': ['host']},
        {'command': 'ls', 'access': ['network']},
        {'command': 'ls > /tmp/x'},
        {'command': 'ls; touch x'},
        {'command': 'X=1 ls'},
        {'command': 'ls $(cat x)'},
        {'command': 'cat /etc/passwd'},
    ],
)
def test_a_command_that_needs_access_or_runs_files_is_not_proposed(suggest, record, settings, payload):
    settings.write_text('sandbox: {paths: {all: {root: ., mode: rw}}}')
    record.asked('run_shell', {'command': 'git status'}, times=6)
    record.asked('run_shell', payload, times=9)

    out = suggest().out

    assert out.count('pattern: ') == 1
    assert '{pattern: "git status", approval: false}' in out


@pytest.mark.parametrize(
    ('argument', 'value'),
    [
        ('path', '{}.csv'),
        ('to', 'friend {}'),
        ('recipientName', 'friend {}'),
        ('whom', 'friend{}@else.example'),
        ('page', 'https://{}.example'),
        ('text', '../{}'),
    ],
)
def test_a_place_to_write_or_send_to_is_not_left_free(suggest, record, argument, value):
    for number in range(9):
        record.asked('export', {argument: value.format(number)})

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize(
    'payload',
    [
        {'to': 'b\x1b[2Job'},
        {'to': 'bo\u202eb'},
        {'to': 'b\u043eb'},
        {'to': 'bob\n  evil: {approval: none}'},
        {'to': 'x' * 101},
        {'to': '[redacted]'},
        {'to': '[hidden]'},
        {'to}, approval: none': 'bob'},
        {'a.b': 'bob'},
        {'': 'bob'},
        {'n': 1e-300},
        {'n': 10**40},
        {f'a{number}': 'x' * 90 for number in range(20)},
    ],
)
def test_what_a_person_cannot_read_as_it_is_is_not_proposed(suggest, record, payload):
    record.asked('send_mail', payload, times=9)

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize(
    'tool', ['*', 'send_*', 'a?', '[a]', 'x y', 'a: {approval: none}\nb', '\x1b[2J', 'x' * 99, '', 7]
)
def test_a_name_that_is_no_plain_name_is_not_proposed(suggest, record, tool):
    record.asked(tool, {}, times=9)

    assert suggest().out == 'no rule is proposed\n'


@pytest.mark.parametrize('name', ['no', 'on', 'null', 'true', 'y', 'NULL', '_1'])
def test_a_name_that_looks_like_yaml_stays_a_name(suggest, record, settings, name):
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    record.asked(name, {'to': name}, times=9)

    finished = suggest('--write', typed='y', is_terminal=True)

    assert finished.status == 0
    case = load_settings(directory=settings.parent).settings.tools[name].cases[0]
    assert (case.when['to'].equal, case.approval) == (name, 'none')


def test_writes_in_one_folder_become_a_directory_of_its_own(suggest, record):
    for number in range(6):
        record.asked('write_file', {'path': f'docs/api/{number}.md', 'content': 'x'})

    finished = suggest()

    assert finished.out == snapshot("""\
# approved 6 times on 2 days, never denied
# newly runs unasked: tools and commands can change, create and delete every file in `docs/api`, except secrets
sandbox:
  paths:
    docs-api: {root: docs/api, mode: rw, write_approval: false, read_approval: true}

""")


def test_reads_in_a_folder_leave_changes_as_they_are(suggest, record):
    record.asked('read_file', {'path': 'docs/a.md'}, times=6)

    out = suggest().out

    assert 'docs: {root: docs, mode: rw, write_approval: true, read_approval: false}' in out
    assert 'tools and commands can read and list every file in `docs`, except secrets' in out


def test_a_folder_with_a_denied_change_is_not_proposed_but_its_part_is(suggest, record):
    record.asked('write_file', {'path': 'docs/api/a.md', 'content': 'x'}, times=6)
    record.asked('write_file', {'path': 'docs/b.md', 'content': 'x'}, times=6)
    record.asked('delete', {'path': 'docs/c.md'}, False)

    out = suggest().out

    assert 'docs-api: {root: docs/api' in out
    assert 'root: docs,' not in out


def test_suffixes_of_a_directory_stay(suggest, record, settings):
    settings.write_text('sandbox: {paths: {all: {root: ., mode: rw, suffixes: [.md], read_approval: true}}}')
    record.asked('write_file', {'path': 'docs/a.md', 'content': 'x'}, times=6)

    assert 'write_approval: false, read_approval: true, suffixes: [".md"]}' in suggest().out


def test_a_folder_whose_name_is_taken_is_not_proposed(suggest, record, settings):
    (settings.parent / 'project').mkdir()
    record.asked('write_file', {'path': 'project/a.md', 'content': 'x'}, times=6)

    assert suggest().out == 'no rule is proposed\n'


def test_a_known_command_becomes_a_rule_after_those_of_the_file(suggest, record, settings):
    rules = '  rules:\n    - {pattern: rm, allowed: false}\n'
    settings.write_text(f'sandbox: {{paths: {{all: {{root: .}}}}}}\nshell:\n{rules}')
    record.asked('run_shell', {'command': 'git status'}, times=6)

    out = suggest().out

    assert '    - {pattern: "git status", approval: false}' in out
    assert 'commands that begin with `git status`, with arguments that are listed as safe' in out


def test_a_command_that_a_written_rule_asks_about_is_not_proposed(suggest, record, settings):
    settings.write_text('sandbox: {paths: {all: {root: .}}}\nshell: {rules: [{pattern: git status}]}')
    record.asked('run_shell', {'command': 'git status'}, times=6)

    assert suggest().out == 'no rule is proposed\n'


def test_a_refused_command_of_the_same_kind_stops_the_proposal(suggest, record, settings):
    settings.write_text('sandbox: {paths: {all: {root: .}}}')
    record.asked('run_shell', {'command': 'git status'}, times=6)
    assert 'git status' in suggest().out
    record.asked('run_shell', {'command': 'git status -s'}, False)

    assert suggest().out == 'no rule is proposed\n'


def test_what_is_allowed_already_is_not_proposed(suggest, record, settings):
    settings.write_text('tools: {send_mail: {approval: none}}')
    record.asked('send_mail', {'to': 'bob'}, times=9)

    assert suggest().out == 'no rule is proposed\n'


def test_at_most_twenty_rules_are_proposed(suggest, record):
    for number in range(MOST + 2):
        record.asked(f'tool_{number}', {}, times=5)

    assert suggest().out.count('approval: none') == MOST


@pytest.mark.parametrize('damage', ['changed', 'removed', 'added', 'cut', 'wrong key', 'no key', 'no log'])
def test_a_log_that_is_not_intact_proposes_nothing(suggest, record, damage):
    record.asked('send_mail', {'to': 'bob'}, times=9)
    record.asked('send_mail', {'to': 'bob'}, False)
    lines = record.path.read_bytes().splitlines(keepends=True)
    options = ()
    match damage:
        case 'changed':
            record.path.write_bytes(b''.join(lines).replace(b'"approved":false', b'"approved":true'))
        case 'removed':
            record.path.write_bytes(b''.join(lines[:-3] + lines[-1:]))
        case 'added':
            record.path.write_bytes(b''.join(lines) + json.dumps({'event': 'x'}).encode() + b'\n')
        case 'cut':
            record.path.write_bytes(b''.join(lines)[:-5])
        case 'wrong key':
            load_key(record.path.parent / 'keys/other.key')
            options = ('--key', str(record.path.parent / 'keys/other.key'))
        case 'no key':
            options = ('--key', 'none.key')
        case _:
            record.path.unlink()

    finished = suggest(*options)

    assert finished.status == 2
    assert finished.out == ''


def test_a_named_log_needs_its_key(tool_approval, record, settings):
    finished = tool_approval('suggest', str(record.path))

    assert finished.status == 2
    assert 'name the key file of the log with `--key FILE`' in finished.err


def test_a_huge_entry_and_odd_entries_are_passed_over(suggest, record):
    record.asked('send_mail', {'to': 'bob'}, times=9)
    record.write({'event': 'decision', 'approved': True, 'how': 'person', 'tool_name': 7, 'payload': 7})
    record.asked('send_mail', {'to': 'x' * 900_000})
    record.asked('read_file', {'path': 'docs/\0a'}, times=6)
    record.asked('read_file', {'path': 7}, times=6)
    record.write({'event': 'settings', 'source': 7})

    assert suggest().status == 0


def test_written_rules_keep_every_line_and_the_file_is_trusted(suggest, record, settings):
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    settings.chmod(0o640)
    record.asked('send_mail', {'to': 'bob'}, times=9)
    record.asked('write_file', {'path': 'docs/a.md', 'content': 'x'}, times=6)

    finished = suggest('--write', typed='y', is_terminal=True)

    assert finished.status == 0
    assert f'Add these 2 rules to {settings}, and trust the file?' in finished.out
    assert load_settings(directory=settings.parent).trusted
    assert settings.stat().st_mode & 0o777 == 0o640
    assert settings.read_text() == snapshot("""\
# Written by hand.
tools:
  pay: {approval: required}  # always
  "drop_*": {approval: required}
  send_mail: {cases: [{when: {to: {is: bob}}, approval: none}]}

# Folders.
sandbox:
  paths:
    project: {root: ., mode: rw, write_approval: true, read_approval: true}
    docs: {root: docs, mode: rw, write_approval: false, read_approval: true}
""")
    assert suggest().out == 'no rule is proposed\n'


def test_a_file_with_a_byte_order_mark_gets_its_rule_too(suggest, record, settings):
    settings.write_bytes(b'\xef\xbb\xbfmode: interactive\r\n')
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    record.asked('send_mail', {'to': 'bob'}, times=9)

    suggest('--write', typed='y', is_terminal=True)

    rule = b'send_mail: {cases: [{when: {to: {is: bob}}, approval: none}]}'
    assert settings.read_bytes() == b'mode: interactive\r\ntools:\r\n  ' + rule + b'\r\n'


def test_nothing_is_written_without_a_yes(suggest, record, settings):
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    record.asked('send_mail', {'to': 'bob'}, times=9)

    refused = suggest('--write', typed='n', is_terminal=True)
    alone = suggest('--write')

    assert (refused.status, alone.status) == (2, 2)
    assert 'nothing was written' in refused.err
    assert 'a person has to read the rules' in alone.err
    assert settings.read_text() == SETTINGS


def test_an_untrusted_file_is_not_written(suggest, record, settings):
    record.asked('send_mail', {'to': 'bob'}, times=9)

    finished = suggest('--write', typed='y', is_terminal=True)

    assert finished.status == 2
    assert 'is not trusted' in finished.err
    assert settings.read_text() == SETTINGS


def test_without_a_settings_file_nothing_is_proposed(suggest, settings):
    settings.unlink()

    finished = suggest()

    assert finished.status == 2
    assert 'tool-approval init' in finished.err


def test_a_file_that_changes_while_it_is_read_is_not_used(suggest, record, settings, monkeypatch):
    def read(*given):
        loaded = settings_in(*given)
        settings.write_text('mode: strict\n')
        return loaded

    monkeypatch.setattr('tool_approval.cli.suggest.settings_in', read)
    finished = suggest()

    assert finished.status == 2
    assert 'has changed just now; try again' in finished.err


def test_a_file_that_changes_after_it_was_written_is_not_trusted(suggest, record, settings, monkeypatch):
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    record.asked('send_mail', {'to': 'bob'}, times=9)

    def replace(path, content):
        path.write_text('default: none\n')

    monkeypatch.setattr('tool_approval.cli.suggest.replace_private', replace)
    finished = suggest('--write', typed='y', is_terminal=True)

    assert finished.status == 2
    assert 'has changed since then; it is not trusted' in finished.err
    assert not load_settings(directory=settings.parent).trusted


def test_a_file_that_changes_at_the_question_is_not_written(suggest, record, settings, monkeypatch):
    trust_settings(load_settings(directory=settings.parent), TrustStore())
    record.asked('send_mail', {'to': 'bob'}, times=9)

    def change(self, *asked):
        settings.write_text('mode: strict\n')
        return True

    monkeypatch.setattr('tool_approval.cli.output.Output.confirm', change)
    finished = suggest('--write', is_terminal=True)

    assert finished.status == 2
    assert 'has changed meanwhile; nothing was written' in finished.err
    assert settings.read_text() == 'mode: strict\n'

"""The operator's stories that need the command, each in a real pseudo-terminal with a model on the loopback."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest
from tool_approval.inbox import Approver, Inbox
from tool_approval.inbox.stores import SQLiteStore

from tool_approval import ApprovalDecision

from .talk import Talk

WRITE = ['write_file', {'path': 'notes.txt', 'content': 'one\ntwo\n'}]


def shell(command: str) -> dict[str, object]:
    return {'calls': [['run_shell', {'command': command}]]}


def told(talk: Talk) -> list[tuple[object, ...]]:
    return [(entry['tool_name'], entry['approved'], *entry['decided_by']) for entry in talk.entries()]


def has_question(shown: str) -> bool:
    return re.search(r'^╰─ .', shown, re.MULTILINE) is not None


def test_first_lines_show_the_settings_and_the_keys(talk: Talk) -> None:
    screen = talk.start(steps=[], columns=300)

    screen.wait_for_question('> ')
    screen.type('What')
    screen.wait_for('defaults apply\n> What')
    shown = screen.text

    assert [line for line in shown.splitlines() if line] == [
        'tool-approval: say what to do, and press Enter; /help shows more, Ctrl-D leaves',
        'tool-approval: model openai-chat:scripted, mode interactive',
        f'tool-approval: directory {talk.cwd}',
        'tool-approval: no OS sandbox: commands are not confined',
        'tool-approval: no settings file, so the defaults apply',
        '> What',
    ]


def test_ctrl_c_text_ctrl_c_clears_and_the_conversation_is_kept_and_continued(talk: Talk) -> None:
    screen = talk.start(steps=[{'text': 'Good morning, Ada.'}])
    talk.say('I am Ada.')
    screen.wait_for('● Good morning, Ada.')
    talk.wait_for_prompt()

    screen.type('\x03')
    screen.wait_for('Press Ctrl-C again, or Ctrl-D, to quit')
    screen.wait_for_question('> ')
    screen.type('never sent')
    screen.wait_for('> never sent')
    screen.type('\x03')
    talk.wait_for_prompt()
    screen.type('\x03')
    status = screen.end()
    talk.start('--continue', 'Who am I?', steps=[{'text': 'Ada.'}]).end()

    assert status == 0
    assert 'saved; `tool-approval run --continue` continues the conversation' in ' '.join(screen.lines)
    assert talk.server.told(0, 'user') == ['I am Ada.', 'Who am I?']


def test_a_command_that_the_person_changed_is_asked_about_with_its_directory(talk: Talk) -> None:
    screen = talk.start('Do it.', steps=[shell('touch a'), {'text': 'Done.'}], columns=140)

    talk.answer('╭─ run_shell', 'e')
    talk.answer('command: "touch a"', '\x15"touch b"')
    talk.answer('command: "touch b"', '\r')
    screen.wait(lambda: '$ touch b' in screen.text, 'the changed command')
    box = talk.answer('╭─ run_shell', 'y').rpartition('╭')[2]
    status = screen.end()

    assert status == 0
    assert box.startswith(f'─ run_shell in {talk.cwd} ')
    assert 'why: ' not in box
    assert [path.name for path in talk.cwd.iterdir()] == ['b']
    assert 'The approver changed the arguments of this call, which ran with' in talk.server.told(1, 'tool')[0]


def test_approve_all_asks_nothing(talk: Talk) -> None:
    screen = talk.start('--approve-all', 'Write.', steps=[{'calls': [WRITE]}, {'text': 'Written.'}])

    status = screen.end()

    assert status == 0
    assert (talk.cwd / 'notes.txt').exists()
    assert 'mode approve_all' in screen.text
    assert 'pydantic-ai v' not in screen.text
    assert not has_question(screen.scrolled)
    assert told(talk) == [('write_file', True, 'mode')]


def test_strict_names_the_tool_and_the_mode(talk: Talk) -> None:
    screen = talk.start('--strict', 'Write.', steps=[{'calls': [WRITE]}, {'text': 'I may not.'}])

    status = screen.end()

    assert status == 0
    assert '  → write_file {"path":"notes.txt"' in screen.text
    assert '  │ Strict mode: calls that need approval are denied without asking anyone.' in screen.text
    assert talk.server.told(1, 'tool')[0].startswith('Strict mode: calls that need approval')
    assert list(talk.cwd.iterdir()) == []


def test_settings_approve_before_a_person_is_asked(talk: Talk) -> None:
    config = talk.home / 'mine.yaml'
    config.write_text('sandbox:\n  paths:\n    here: {root: ., mode: rw, write_approval: false}\n')

    screen = talk.start('--config', str(config), 'Write.', steps=[{'calls': [WRITE]}, {'text': 'Written.'}])
    status = screen.end()

    assert status == 0
    assert not has_question(screen.scrolled)
    assert '  │ Wrote here:notes.txt (8 bytes).\n● Written.' in screen.text
    assert told(talk) == []


def test_shell_rules_match_by_pattern_and_blocked_commands_never_ask(talk: Talk) -> None:
    config = talk.home / 'mine.yaml'
    config.write_text('shell:\n  rules:\n    - {pattern: echo, approval: false}\n    - {pattern: rm, allowed: false}\n')
    steps = [shell('echo free'), shell('echo free; rm -r .'), shell('touch made'), {'text': 'Three commands.'}]
    screen = talk.start('--config', str(config), 'Go.', steps=steps)

    shown = talk.answer('╭─ run_shell', 'y')
    status = screen.end()

    assert status == 0
    assert '$ touch made' in shown
    assert len(re.findall('^╰─ .', shown, re.MULTILINE)) == 1
    assert (talk.cwd / 'made').exists()
    results = talk.server.told(3, 'tool')
    assert results[0] == 'free'
    assert 'the rule `rm` blocks it' in results[1]
    assert [entry['approved'] for entry in talk.entries()] == [True]
    [blocked] = talk.entries(event='blocked')
    assert 'the rule `rm` blocks it' in blocked['note']
    assert blocked['payload']['command'] == 'echo free; rm -r .'
    assert [entry['payload']['command'] for entry in talk.entries(event='unasked')] == ['echo free']


def test_session_approval_is_listed_and_revoked_and_ends_with_the_program(talk: Talk) -> None:
    answer = {'text': 'Written.'}
    write = {'calls': [WRITE]}
    screen = talk.start(steps=[write, answer, write, answer, write, answer, write, answer])

    talk.say('One.')
    talk.answer('╭─ write_file', 's')
    talk.say('Two.')
    talk.say('/approvals')
    listed = talk.wait_for_prompt()
    talk.say('/forget 1')
    screen.wait_for('Forgotten: ')
    talk.say('Three.')
    talk.answer('╭─ write_file', 'l')
    screen.wait_for('Nothing is remembered.')
    talk.answer('╭─ write_file', 'r')
    talk.answer('Press 1 to 3; Esc goes back.', '1')
    talk.leave()
    again = talk.start('One more.', steps=[write, answer])
    talk.answer('╭─ write_file', 'n')
    again.end()

    assert listed.endswith('> /approvals\n  1. session  write_file: Write project:notes.txt\n\n>')
    assert [entry['approved'] for entry in talk.entries()] == [True, True, True, False]


def test_ctrl_c_stops_the_tool_that_runs_and_not_the_program(talk: Talk) -> None:
    command = 'echo $$ > pid; exec sleep 1000'
    screen = talk.start(steps=[shell(command), {'text': 'I am here.'}])
    talk.say('Wait.')
    talk.answer('╭─ run_shell', 'y')
    screen.wait_for('  ... run_shell ')

    screen.type('\x03')
    screen.wait_for('Stopped.')
    pid = int((talk.cwd / 'pid').read_text())
    talk.say('Are you there?')
    shown = screen.wait_for('● I am here.')
    status = talk.leave()

    assert status == 0
    assert not Path(f'/proc/{pid}').exists()
    assert '...' not in shown.partition('approved')[2].replace('exec sleep 1000', '')
    assert 'may have taken effect' in talk.server.told(1, 'tool')[0]


@pytest.mark.parametrize('key', ['q', '\x03'])
def test_stopping_at_the_question_stops_the_turn_and_not_the_program(key: str, talk: Talk) -> None:
    screen = talk.start(steps=[{'calls': [WRITE]}, {'text': 'I am here.'}])
    talk.say('Write.')
    talk.answer('╭─ write_file', key)

    screen.wait_for('Stopped.')
    talk.say('Are you there?')
    screen.wait_for('● I am here.')
    status = talk.leave()

    assert status == 0
    assert list(talk.cwd.iterdir()) == []
    [denied] = [entry for entry in talk.entries() if entry['event'] == 'decision']
    assert (denied['approved'], denied['note']) == (False, 'The user stopped the run.')


def test_a_terminal_that_is_closed_in_mid_question_approves_nothing_and_keeps_the_conversation(talk: Talk) -> None:
    screen = talk.start('--save', 'work', 'Write.', steps=[{'text': 'I write.', 'calls': [WRITE]}])
    screen.wait_for_question('╭─ write_file')

    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), screen.program.child_fd)
    screen.program.wait()

    # Python itself gives 120 where it cannot write what was left to say.
    assert screen.program.exitstatus in (128 + signal.SIGHUP, 120)
    assert list(talk.cwd.iterdir()) == []
    kept = (talk.state / 'tool-approval' / 'conversations' / 'work.json').read_text()
    assert 'I write.' in kept


def test_all_calls_of_a_response_are_one_question(talk: Talk) -> None:
    calls = [['write_file', {'path': name, 'content': 'x\n'}] for name in ('a.txt', 'b.txt', 'c.txt')]
    screen = talk.start('Write.', steps=[{'calls': calls}, {'text': 'Written.'}])

    talk.answer('3 requests: ', 'A')
    talk.answer('Approve all 3? Press A once more', 'A')
    status = screen.end()

    assert status == 0
    assert sorted(path.name for path in talk.cwd.iterdir()) == ['a.txt', 'b.txt', 'c.txt']
    assert '  → write_file: Write project:b.txt\n  │ Wrote project:b.txt (2 bytes).' in screen.text


@pytest.mark.parametrize('columns', [80, 50])
def test_calls_between_those_that_are_asked_about_are_listed_above_the_question(talk: Talk, columns: int) -> None:
    read = ['read_file', {'path': 'notes.txt'}]
    calls = [read, WRITE, read, ['write_file', {'path': 'b.txt', 'content': 'x\n'}]]
    screen = talk.start('Write.', steps=[{'calls': calls}, {'text': 'Written.'}], columns=columns)

    shown = talk.answer('2 requests: ', 'N')
    screen.end()

    assert (
        'Next, in this order (? needs your answer):\n'
        '  ? write_file: Write project:notes.txt\n'
        '  → read_file {"path":"notes.txt"}\n'
        '  ? write_file: Write project:b.txt\n'
    ) in shown


def test_a_conversation_is_saved_and_resumed(talk: Talk) -> None:
    first = talk.start('--save', 'work', 'I am Ada.', steps=[{'text': 'Good morning, Ada.'}])
    first.end()

    second = talk.start('--resume', 'work', 'Who am I?', steps=[{'text': 'Ada.'}])
    second.end()

    assert talk.server.told(0, 'user') == ['I am Ada.', 'Who am I?']
    assert talk.server.told(0, 'assistant') == ['Good morning, Ada.']
    kept = talk.state / 'tool-approval' / 'conversations' / 'work.json'
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_program_that_is_killed_in_mid_turn_loses_no_word_before_it(talk: Talk) -> None:
    screen = talk.start(steps=[{'text': 'I write.', 'calls': [WRITE]}])
    talk.say('Write.')
    screen.wait_for_question('╭─ write_file')
    screen.program.kill(signal.SIGKILL)
    screen.end()

    talk.start('--continue', 'Go on.', steps=[{'text': 'I will.'}]).end()

    assert talk.server.told(0, 'user') == ['Write.', 'Go on.']
    assert 'may have taken effect' in talk.server.told(0, 'tool')[0]
    assert list(talk.cwd.iterdir()) == []


@pytest.mark.parametrize(('answer', 'is_asked'), [('n', True), ('\r', True), ('y', False)])
def test_untrusted_settings_do_not_loosen_the_policy(answer: str, is_asked: bool, talk: Talk) -> None:
    (talk.cwd / 'approvals.yaml').write_text(
        'sandbox:\n  paths:\n    here: {root: ., mode: rw, write_approval: false}\n'
    )
    screen = talk.start(steps=[{'calls': [WRITE]}, {'text': 'Done.'}], columns=150)
    talk.say('Write.')
    shown = screen.wait_for_question('Trust this file as it is now? [y/N]')
    assert talk.server.requests == []

    screen.type(answer)
    if is_asked:
        talk.answer('╭─ write_file', 'n')
    screen.wait_for('● Done.')
    talk.leave()

    assert 'approvals.yaml is not trusted' in shown
    assert 'would allow:' in shown
    assert (talk.cwd / 'notes.txt').exists() is not is_asked
    assert ('(trusted)' in screen.scrolled) is not is_asked


def test_neither_keys_typed_ahead_nor_a_paste_trust_a_file(talk: Talk) -> None:
    (talk.cwd / 'approvals.yaml').write_text('default: none\n')
    screen = talk.start(steps=[{'text': 'Hello.'}], columns=150)
    talk.wait_for_prompt()
    screen.type('y\ry\r')
    screen.wait_for_question('Trust this file as it is now? [y/N]')

    screen.type('y\ry\r\x1b[200~y\x1b[201~')
    screen.wait(lambda: '\a' in screen.sent, 'a bell')
    screen.type('n')
    screen.wait_for('● Hello.')
    talk.wait_for_prompt()

    assert 'the file was not trusted' in screen.text
    assert talk.server.told(0, 'user') == ['y\ny']
    assert talk.leave() == 0


def test_the_prompt_may_come_through_a_pipe_and_the_answer_comes_from_the_terminal(talk: Talk) -> None:
    steps = [{'calls': [WRITE]}, {'text': 'Written.'}]
    screen = talk.start(steps=steps, wrap=('sh', '-c', 'echo "Write. y" | "$@"', 'sh'))

    talk.answer('╭─ write_file', 'y')
    status = screen.end()

    assert status == 0
    assert talk.server.told(0, 'user') == ['Write. y\n']
    assert (talk.cwd / 'notes.txt').exists()


def test_without_a_terminal_calls_that_need_approval_are_denied_with_a_message(talk: Talk) -> None:
    finished = talk.run('Write.', steps=[{'calls': [WRITE]}, {'text': 'I may not.'}], wrap=('setsid', '--wait'))

    assert finished.returncode == 0
    assert 'Denied write_file: Write project:notes.txt. The approver could not be asked' in finished.stderr
    assert finished.stdout.endswith('● I may not.\n')
    assert list(talk.cwd.iterdir()) == []
    assert os.path.exists(talk.state / 'tool-approval' / 'audit' / 'decisions.jsonl')


def test_run_without_a_terminal_and_a_prompt_is_an_error(talk: Talk) -> None:
    finished = talk.run(steps=[], wrap=('setsid', '--wait'))

    assert finished.returncode == 2
    assert finished.stderr.endswith('there is no prompt; give it as an argument, or on standard input\n')


@pytest.mark.parametrize('is_marked', [True, False])
def test_lines_that_are_pasted_are_one_message(talk: Talk, is_marked: bool) -> None:
    screen = talk.start(steps=[{'text': 'First.'}, {'text': 'Second.'}])
    talk.wait_for_prompt()

    screen.type('\x1b[200~one\rtwo\r\rthree\x1b[201~' if is_marked else 'one\rtwo\r\rthree')
    screen.wait(lambda: screen.lines[-1].strip(' >').endswith('three'), 'the last line')
    screen.type(' four')
    screen.wait(lambda: screen.lines[-1].endswith('three four'), 'the whole line')
    screen.type('\r')
    screen.wait_for('● First.')
    talk.say('five')
    screen.wait_for('● Second.')

    assert talk.leave() == 0
    assert talk.server.told(1, 'user') == ['one\ntwo\n\nthree four', 'five']


def test_lines_that_are_pasted_with_their_last_line_end_are_sent(talk: Talk) -> None:
    screen = talk.start(steps=[{'text': 'First.'}])
    talk.wait_for_prompt()

    screen.type('one\rtwo\r')
    screen.wait_for('● First.')

    assert talk.leave() == 0
    assert talk.server.told(0, 'user') == ['one\ntwo']


async def answered(state: Path, decision: ApprovalDecision) -> None:
    """Answer the one request that waits in the inbox of this state directory, as its page does."""
    with Inbox(SQLiteStore(state / 'tool-approval' / 'inbox.sqlite')) as inbox:
        async for _ in inbox.changes():
            for entry in await inbox.open():
                await inbox.decide(entry.id, decision, by=Approver(id='bob'), digest=entry.digest)
                return


def test_a_question_is_in_the_inbox_too_and_either_answers_it(talk: Talk) -> None:
    calls = [['write_file', {'path': name, 'content': 'x\n'}] for name in ('a.txt', 'b.txt')]
    steps = [*({'calls': [each]} for each in calls), {'text': 'One of them.'}]
    screen = talk.start('--inbox', 'Write.', steps=steps, columns=120)

    screen.wait_for('a.txt')
    screen.wait_for_question('╭─ write_file')
    asyncio.run(answered(talk.state, ApprovalDecision(approved=True)))
    screen.wait_for('bob approved write_file elsewhere: Write project:a.txt')
    screen.wait_for('╭─ write_file b.txt')
    talk.answer('╭─ write_file', 'n')
    status = screen.end()

    assert status == 0
    assert [path.name for path in talk.cwd.iterdir()] == ['a.txt']
    assert [entry['approved'] for entry in talk.entries()] == [True, False]
    assert talk.entries()[0]['decided_by'] == ['bob']
    with Inbox(SQLiteStore(talk.state / 'tool-approval' / 'inbox.sqlite')) as inbox:
        outcomes = [entry.outcome.partition(' by ')[0] for entry in asyncio.run(inbox.history())]
    assert outcomes == ['Denied', 'Approved']

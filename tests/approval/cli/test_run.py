"""`tool-approval run` with an agent of the user's own, whose model is a script; tests/flows runs it in a terminal."""

import json
import os
import subprocess
import sys

import pytest
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.prompts import Prompts
from tool_approval.assistant.saving import SavedConversation
from tool_approval.cli import main, output
from tool_approval.cli.run import MODEL_VARIABLE

from .process import Typed

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.messages import ToolCallPart
from tool_approval.assistant.stories.scene import scripted

STEPS = [[ToolCallPart('pay', {'amount': 5})], 'That is all.']
agent = Agent(scripted(lambda results: STEPS[min(len(results), 1)]), name='cashier')
talker = Agent(scripted(lambda results: 'I am here.'))


@agent.tool_plain(requires_approval=True)
def pay(amount: int) -> str:
    return f'paid {amount}'


def broken(results):
    raise ConnectionError('the line is dead')


breaks = Agent(scripted(broken))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / 'work'
    made.mkdir()
    (made / 'cashier.py').write_text(AGENT)
    monkeypatch.chdir(made)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(sys, 'stdin', Typed(''))
    yield made
    sys.modules.pop('cashier', None)


@pytest.fixture
def says(monkeypatch):
    """Lets a person say something in a terminal, which `tests/flows/run` has, and leave."""

    def prepare(*messages, before_it_is_loaded=False):
        waiting = iter(messages)

        def ask(self, above=None):
            write = None if above is None else above()
            while not (write is not None or above is None or before_it_is_loaded):
                os.sched_yield()
                write = above()
            if write is not None:
                write()
            return next(waiting, None)

        monkeypatch.setattr(sys, 'stdin', Typed('', is_terminal=True))
        monkeypatch.setattr(Prompts, 'ask', ask)

    return prepare


@pytest.fixture
def state(folder, tmp_path):
    return tmp_path / 'state' / 'tool-approval'


def test_approve_all_runs_what_would_be_asked_and_says_so_in_the_log(folder, state, capsys):
    status = main(['run', '--agent', 'cashier:agent', '--approve-all', 'Pay.'])

    assert status == 0
    assert '│ paid 5' in capsys.readouterr().out
    lines = [json.loads(line) for line in (state / 'audit' / 'decisions.jsonl').read_text().splitlines()]
    assert [(line['mode'], line['approved']) for line in lines if line['event'] == 'decision'] == [
        ('approve_all', True)
    ]


@pytest.mark.parametrize('options', [['--strict'], ['--mode', 'strict']])
def test_strict_denies_and_names_the_mode(folder, capsys, options):
    main(['run', '--agent', 'cashier:agent', *options, 'Pay.'])

    shown = capsys.readouterr().out
    assert '→ pay' in shown
    assert 'Strict mode: approval required' in shown
    assert 'paid' not in shown


def test_piped_text_is_the_prompt(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, 'stdin', Typed('Are you\nthere?\n'))

    status = main(['run', '--agent', 'cashier:talker'])

    assert status == 0
    assert capsys.readouterr().out == '● I am here.\n'


def test_in_a_terminal_there_is_a_turn_for_each_message(folder, capsys, says):
    says('Hello.', '/help', 'Still?')

    status = main(['run', '--agent', 'cashier:talker'])

    shown = capsys.readouterr().out
    assert status == 0
    assert shown.count('I am here.') == 2
    assert '/approvals' in shown


def test_a_conversation_is_kept_only_when_asked_for(folder, state, capsys):
    main(['run', '--agent', 'cashier:talker', 'One.'])
    assert not (state / 'conversations').exists()

    main(['run', '--agent', 'cashier:talker', '--save', 'talk', 'Two.'])
    main(['run', '--agent', 'cashier:talker', '--resume', 'talk', 'Three.'])

    kept = (state / 'conversations' / 'talk.json').read_text()
    assert kept.count('I am here.') == 2
    assert 'Two.' in kept
    assert 'Three.' in kept
    assert 'One.' not in kept


def test_a_conversation_that_is_kept_is_not_replaced_by_another(folder, state, capsys):
    main(['run', '--agent', 'cashier:talker', '--save', 'talk', 'Two.'])
    capsys.readouterr()

    status = main(['run', '--agent', 'cashier:talker', '--save', 'talk', 'Three.'])

    assert status == 2
    assert "a conversation 'talk' exists already; continue it with --resume" in capsys.readouterr().err
    assert 'Two.' in (state / 'conversations' / 'talk.json').read_text()
    assert main(['run', '--agent', 'cashier:talker', '--save', 'talk', '--resume', 'talk', 'Three.']) == 0


@pytest.mark.parametrize('option', ['--save', '--resume'])
def test_two_runs_at_once_do_not_keep_one_conversation(folder, state, capsys, option):
    """As in two terminals: the first is still talking when the second starts."""
    if option == '--resume':
        main(['run', '--agent', 'cashier:talker', '--save', 'talk', 'Zero.'])

    with SavedConversation(state / 'conversations', 'talk').held():
        status = main(['run', '--agent', 'cashier:talker', option, 'talk', 'One.'])

    assert status == 2
    assert "another run uses the conversation 'talk'" in capsys.readouterr().err
    assert main(['run', '--agent', 'cashier:talker', option, 'talk', 'Two.']) == 0
    kept = (state / 'conversations' / 'talk.json').read_text()
    assert 'Two.' in kept
    assert 'One.' not in kept


def test_a_run_holds_the_name_of_its_conversation_while_it_talks(folder, state, monkeypatch):
    held = []

    def look(self):
        with pytest.raises(AssistantError, match='another run uses') as caught:
            SavedConversation(state / 'conversations', 'talk').held().__enter__()
        held.append(caught)

    monkeypatch.setattr(sys, 'stdin', Typed('', is_terminal=True))
    monkeypatch.setattr(Prompts, 'ask', look)

    main(['run', '--agent', 'cashier:talker', '--save', 'talk'])

    assert len(held) == 1


def test_a_new_conversation_in_which_nothing_was_answered_is_not_kept(folder, state, capsys):
    arguments = ['--save', 'talk', 'Go.']

    assert [main(['run', '--agent', 'cashier:breaks', *arguments]) for _ in range(2)] == [1, 1]

    assert not (state / 'conversations' / 'talk.json').exists()
    assert main(['run', '--agent', 'cashier:talker', *arguments]) == 0
    assert main(['run', '--agent', 'cashier:breaks', '--resume', 'talk', 'And now?']) == 1
    assert 'And now?' in (state / 'conversations' / 'talk.json').read_text()


def test_a_turn_that_fails_is_one_line_and_exit_status_1(folder, capsys):
    status = main(['run', '--agent', 'cashier:breaks', 'Go.'])

    assert status == 1
    assert 'The run failed: the line is dead' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        (['Go.'], 'no model is named; use --model NAME, or set TOOL_APPROVAL_MODEL'),
        (['--agent', 'cashier:agent', '--save', 'a', '--resume', 'b', 'Go.'], 'name different conversations'),
        (['--agent', 'cashier:agent', '--save', 'a', '--continue', 'Go.'], 'name different conversations'),
        (['--agent', 'cashier:agent', '--resume', 'never', 'Go.'], "there is no saved conversation 'never'"),
        (['--agent', 'cashier:agent', ' '], 'there is no prompt'),
        (['--agent', 'cashier:nothing', 'Go.'], 'not an agent'),
        (['--agent', 'cashier:agent', '--config', 'none.yaml', 'Go.'], 'none.yaml'),
        (['--agent', 'cashier:agent', '--strict', '--approve-all', 'Go.'], 'not allowed with'),
        (['--model', 'no-such-model', 'Go.'], 'model'),
    ],
)
def test_what_cannot_be_started_is_one_line(folder, arguments, problem, capsys):
    status = main(['run', *arguments])

    shown = capsys.readouterr()
    assert status in (1, 2)
    assert problem in (shown.err + shown.out).splitlines()[-1]
    assert 'Traceback' not in shown.err


def test_untrusted_file_is_reported_and_only_tightens(folder, capsys):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')

    main(['run', '--agent', 'cashier:agent', '--strict', 'Pay.'])

    shown = capsys.readouterr()
    assert 'is not trusted' in shown.err
    assert 'to trust the file, start a conversation or run `tool-approval trust`' in shown.err
    assert 'Strict mode' in shown.out


@pytest.mark.parametrize(('key', 'is_trusted'), [('y', True), ('Y', True), ('n', False), (None, False)])
def test_in_a_terminal_the_person_is_asked_whether_to_trust_it(folder, capsys, monkeypatch, says, key, is_trusted):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')
    says('Pay.')
    # Stands in for the terminal itself, which `tests/flows/run` has.
    monkeypatch.setattr(output, 'pressed_key', lambda question: key)

    main(['run', '--agent', 'cashier:agent', '--strict'])

    shown = capsys.readouterr()
    assert 'the tool `pay` runs without approval' in shown.err
    assert 'you will be asked to trust the file before your first message is sent' in shown.err
    assert ('│ paid 5' in shown.out) is is_trusted
    assert ('the file was not trusted' in shown.err) is not is_trusted


@pytest.mark.parametrize('before_it_is_loaded', [False, True])
def test_what_holds_is_said_however_early_the_first_message_comes(folder, capsys, says, before_it_is_loaded):
    says('/help', before_it_is_loaded=before_it_is_loaded)

    status = main(['run', '--model', 'test', '--no-os-sandbox'])

    shown = capsys.readouterr()
    assert status == 0
    assert shown.err.count('model test, mode interactive') == 1
    assert shown.err.startswith('tool-approval: say what to do')
    assert '/approvals' in shown.out


@pytest.mark.parametrize('first', [[], ['/quit']])
@pytest.mark.parametrize('which', [['--model', 'test'], ['--agent', 'cashier:talker']])
def test_who_leaves_at_once_is_asked_nothing(folder, state, capsys, says, first, which):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')
    says(*first)

    assert main(['run', *which]) == 0

    assert 'the tool `pay` runs without approval' not in capsys.readouterr().err
    assert list((state / 'conversations').iterdir()) == []


def test_settings_that_cannot_be_used_end_it_while_a_message_is_typed(folder, capsys, says):
    (folder / 'approvals.yaml').write_text('nonsense: {')
    says('Hello.')

    assert main(['run', '--model', 'test']) == 2

    assert 'approvals.yaml' in capsys.readouterr().err.splitlines()[-1]


def test_a_conversation_without_a_name_is_kept_and_continued(folder, state, capsys, says):
    talk = ['run', '--agent', 'cashier:talker']
    says('One.')
    main(talk)
    assert 'saved; `tool-approval run --continue` continues the conversation' in capsys.readouterr().err

    says('Two.')
    main([*talk, '--continue'])
    assert 'tool-approval: the conversation continues after: One.\n' in capsys.readouterr().err
    main([*talk, '--continue', 'Three.'])

    [kept] = (state / 'conversations').glob('*.json')
    assert [text in kept.read_text() for text in ('One.', 'Two.', 'Three.')] == [True] * 3
    assert kept.stat().st_mode & 0o777 == 0o600
    says('Four.')
    main(talk)
    assert len(list((state / 'conversations').glob('*.json'))) == 2


def test_what_was_said_before_can_be_recalled(folder, state, says, monkeypatch):
    histories = []

    def ask(self, above=None):
        histories.append([*self.history])
        return next(waiting, None)

    talk = ['run', '--agent', 'cashier:talker']
    main([*talk, '--save', 'talk', 'One.'])
    says()
    monkeypatch.setattr(Prompts, 'ask', ask)
    waiting = iter(['Two.'])
    main([*talk, '--resume', 'talk'])

    assert histories == [[], ['One.']]


def test_discarded_conversation_is_deleted(folder, state, capsys, says):
    says('One.', '/discard')

    main(['run', '--agent', 'cashier:talker'])

    assert 'is kept' not in capsys.readouterr().err
    assert list((state / 'conversations').iterdir()) == []


def test_another_directory_has_other_conversations(folder, state, capsys, says, monkeypatch):
    says('One.')
    main(['run', '--agent', 'cashier:talker'])
    (folder / 'below').mkdir()
    monkeypatch.chdir(folder / 'below')

    assert main(['run', '--model', 'test', '--continue', 'Two.']) == 2

    assert 'there is no conversation to continue in this directory' in capsys.readouterr().err


def test_the_model_can_be_named_by_the_environment(folder, capsys, monkeypatch):
    monkeypatch.setenv(MODEL_VARIABLE, 'test')

    status = main(['run', '--strict', '--no-os-sandbox', 'Go.'])

    assert status == 0
    assert '→ read_file' in capsys.readouterr().out


def test_with_an_inbox_the_start_says_where_else_questions_are(folder, state, capsys):
    status = main(['run', '--agent', 'cashier:talker', '--inbox', 'Hello.'])

    assert status == 0
    assert 'questions are also in your inbox: `tool-approval serve` shows them' in capsys.readouterr().err


def test_the_line_to_type_into_needs_neither_the_host_nor_the_settings():
    late = ('pydantic', 'pydantic_ai', 'asyncio', 'yaml', 'tree_sitter', 'tool_approval.settings')
    program = f'import sys, tool_approval.cli.run; print([name for name in {late} if name in sys.modules])'

    # Without the plugins of a development environment, such as coverage.
    shown = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, env={})

    assert shown.stdout == '[]\n'

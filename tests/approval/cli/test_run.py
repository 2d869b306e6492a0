"""`tool-approval run` with an agent of the user's own, whose model is a script; tests/flows runs it in a terminal."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from tool_approval.assistant.errors import AssistantError
from tool_approval.assistant.prompts import Prompts
from tool_approval.assistant.saving import SavedConversation
from tool_approval.cli import main, output
from tool_approval.cli.run import MODEL_VARIABLE

from .process import Finished, Typed

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
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(sys, 'stdin', Typed(''))
    yield made
    sys.modules.pop('cashier', None)


@pytest.fixture
def run(folder, capsys):
    """`run('--model test Go.')`: what comes of `tool-approval run` with these words."""

    def start(words):
        status = main(['run', *shlex.split(words)])
        return Finished(status, *capsys.readouterr())

    return start


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


def test_approve_all_runs_every_call_and_logs_its_mode(run, state):
    finished = run('--agent cashier:agent --approve-all Pay.')

    assert finished.status == 0
    assert '│ paid 5' in finished.out
    lines = [json.loads(line) for line in (state / 'audit' / 'decisions.jsonl').read_text().splitlines()]
    assert [(line['mode'], line['approved']) for line in lines if line['event'] == 'decision'] == [
        ('approve_all', True)
    ]


@pytest.mark.parametrize('option', ['--strict', '--mode strict'])
def test_strict_denies_and_names_the_mode(run, option):
    shown = run(f'--agent cashier:agent {option} Pay.').out

    assert '→ pay' in shown
    assert 'Strict mode: calls that need approval' in shown
    assert 'paid' not in shown


@pytest.mark.parametrize('option', ['--requests', '--retries', '--timeout'])
@pytest.mark.parametrize('number', ['0', '-1', '1.5', 'many', '86401', '\u0663', ''])
def test_a_number_that_makes_no_sense_is_refused(run, state, option, number):
    finished = run(f'--agent cashier:agent {option}={number} Pay.')

    assert (finished.status, finished.out) == (2, '')
    assert f"'{number}' is not a whole number from 1 to 86400" in finished.err
    assert not state.exists()


@pytest.mark.parametrize(('requests', 'ends'), [(1, False), (2, True)])
def test_a_run_makes_as_many_requests_as_the_option_allows(run, requests, ends):
    shown = run(f'--agent cashier:agent --approve-all --requests {requests} Pay.').out

    assert 'paid 5' in shown
    assert ('That is all.' in shown) == ends


def test_a_run_leaves_no_file_open(run):
    run('--agent cashier:talker Hello.')
    before = os.listdir('/proc/self/fd')

    assert run('--agent cashier:talker Hello.').status == 0

    assert os.listdir('/proc/self/fd') == before


def test_piped_text_is_the_prompt(run, monkeypatch):
    monkeypatch.setattr(sys, 'stdin', Typed('Are you\nthere?\n'))

    finished = run('--agent cashier:talker')

    assert finished.status == 0
    assert finished.out == '● I am here.\n'


def test_each_message_in_a_terminal_is_a_turn(run, says):
    says('Hello.', '/help', 'Still?')

    finished = run('--agent cashier:talker')

    assert finished.status == 0
    assert finished.out.count('I am here.') == 2
    assert '/approvals' in finished.out


def test_a_conversation_is_kept_only_when_asked_for(run, state):
    run('--agent cashier:talker One.')
    assert not (state / 'conversations').exists()

    run('--agent cashier:talker --save talk Two.')
    run('--agent cashier:talker --resume talk Three.')

    kept = (state / 'conversations' / 'talk.json').read_text()
    assert kept.count('I am here.') == 2
    assert 'Two.' in kept
    assert 'Three.' in kept
    assert 'One.' not in kept


def test_a_conversation_that_is_kept_is_not_replaced_by_another(run, state):
    run('--agent cashier:talker --save talk Two.')

    finished = run('--agent cashier:talker --save talk Three.')

    assert finished.status == 2
    assert "a conversation 'talk' exists already; continue it with --resume" in finished.err
    assert 'Two.' in (state / 'conversations' / 'talk.json').read_text()
    assert run('--agent cashier:talker --save talk --resume talk Three.').status == 0


@pytest.mark.parametrize('option', ['--save', '--resume'])
def test_two_runs_at_once_do_not_keep_one_conversation(run, state, option):
    """As in two terminals: the first is still talking when the second starts."""
    if option == '--resume':
        run('--agent cashier:talker --save talk Zero.')

    with SavedConversation(state / 'conversations', 'talk').held():
        finished = run(f'--agent cashier:talker {option} talk One.')

    assert finished.status == 2
    assert "another run uses the conversation 'talk'" in finished.err
    assert run(f'--agent cashier:talker {option} talk Two.').status == 0
    kept = (state / 'conversations' / 'talk.json').read_text()
    assert 'Two.' in kept
    assert 'One.' not in kept


def test_conversation_is_locked_during_the_run(run, state, monkeypatch):
    held = []

    def look(self):
        with pytest.raises(AssistantError, match='another run uses') as caught:
            SavedConversation(state / 'conversations', 'talk').held().__enter__()
        held.append(caught)

    monkeypatch.setattr(sys, 'stdin', Typed('', is_terminal=True))
    monkeypatch.setattr(Prompts, 'ask', look)

    run('--agent cashier:talker --save talk')

    assert len(held) == 1


def test_new_conversation_without_an_answer_is_not_saved(run, state):
    assert [run('--agent cashier:breaks --save talk Go.').status for _ in range(2)] == [1, 1]

    assert not (state / 'conversations' / 'talk.json').exists()
    assert run('--agent cashier:talker --save talk Go.').status == 0
    assert run('--agent cashier:breaks --resume talk "And now?"').status == 1
    assert 'And now?' in (state / 'conversations' / 'talk.json').read_text()


def test_a_turn_that_fails_is_one_line_and_exit_status_1(run):
    finished = run('--agent cashier:breaks Go.')

    assert finished.status == 1
    assert 'The run failed: the line is dead' in finished.out


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        ('Go.', 'no model is named; use --model NAME, or set TOOL_APPROVAL_MODEL'),
        ('--agent cashier:agent --save a --resume b Go.', 'name different conversations'),
        ('--agent cashier:agent --save a --continue Go.', 'name different conversations'),
        ('--agent cashier:agent --resume never Go.', "there is no saved conversation 'never'"),
        ('--agent cashier:agent " "', 'there is no prompt'),
        ('--agent cashier:nothing Go.', 'not an agent'),
        ('--agent cashier:agent --config none.yaml Go.', 'none.yaml'),
        ('--agent cashier:agent --strict --approve-all Go.', 'not allowed with'),
        ('--model no-such-model Go.', 'model'),
    ],
)
def test_run_that_cannot_start_is_one_line(run, arguments, problem):
    finished = run(arguments)

    assert finished.status in (1, 2)
    assert problem in (finished.err + finished.out).splitlines()[-1]
    assert 'Traceback' not in finished.err


def test_untrusted_file_is_reported_and_only_tightens(run, folder):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')

    finished = run('--agent cashier:agent --strict Pay.')

    assert 'is not trusted' in finished.err
    assert 'to trust the file, start a conversation or run `tool-approval trust`' in finished.err
    assert 'Strict mode' in finished.out


@pytest.mark.parametrize(('key', 'is_trusted'), [('y', True), ('Y', True), ('n', False), (None, False)])
def test_in_a_terminal_the_person_is_asked_whether_to_trust_it(run, folder, monkeypatch, says, key, is_trusted):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')
    says('Pay.')
    # Stands in for the terminal itself, which `tests/flows/run` has.
    monkeypatch.setattr(output, 'pressed_key', lambda question, **how: key)

    finished = run('--agent cashier:agent --strict')

    assert 'tools that need no approval: `pay`' in finished.err
    assert 'you will be asked to trust the file before your first message is sent' in finished.err
    assert ('│ paid 5' in finished.out) is is_trusted
    assert ('the file was not trusted' in finished.err) is not is_trusted


@pytest.mark.parametrize('before_it_is_loaded', [False, True])
def test_settings_are_announced_even_if_the_first_message_comes_early(run, says, before_it_is_loaded):
    says('/help', before_it_is_loaded=before_it_is_loaded)

    finished = run('--model test --no-os-sandbox')

    assert finished.status == 0
    assert finished.err.count('model test, mode interactive') == 1
    assert finished.err.startswith('tool-approval: say what to do')
    assert '/approvals' in finished.out


@pytest.mark.parametrize('first', [[], ['/quit']])
@pytest.mark.parametrize('agent', ['--model test', '--agent cashier:talker'])
def test_person_who_leaves_at_once_is_not_asked_to_trust(run, folder, state, says, first, agent):
    (folder / 'approvals.yaml').write_text('tools:\n  pay: {approval: none}\n')
    says(*first)

    finished = run(agent)

    assert finished.status == 0
    assert 'tools that need no approval: `pay`' not in finished.err
    assert list((state / 'conversations').iterdir()) == []


def test_invalid_settings_end_the_run_while_a_message_is_typed(run, folder, says):
    (folder / 'approvals.yaml').write_text('nonsense: {')
    says('Hello.')

    finished = run('--model test')

    assert finished.status == 2
    assert 'approvals.yaml' in finished.err.splitlines()[-1]


def test_a_conversation_without_a_name_is_kept_and_continued(run, state, says):
    says('One.')
    assert 'saved; `tool-approval run --continue` continues the conversation' in run('--agent cashier:talker').err

    says('Two.')
    continued = run('--agent cashier:talker --continue')
    assert 'tool-approval: the conversation continues after: One.\n' in continued.err
    run('--agent cashier:talker --continue Three.')

    [kept] = (state / 'conversations').glob('*.json')
    assert [text in kept.read_text() for text in ('One.', 'Two.', 'Three.')] == [True] * 3
    assert kept.stat().st_mode & 0o777 == 0o600
    says('Four.')
    run('--agent cashier:talker')
    assert len(list((state / 'conversations').glob('*.json'))) == 2


def test_messages_of_a_resumed_conversation_can_be_recalled(run, state, says, monkeypatch):
    histories = []

    def ask(self, above=None):
        histories.append([*self.history])
        return next(waiting, None)

    run('--agent cashier:talker --save talk One.')
    says()
    monkeypatch.setattr(Prompts, 'ask', ask)
    waiting = iter(['Two.'])
    run('--agent cashier:talker --resume talk')

    assert histories == [[], ['One.']]


def test_discarded_conversation_is_deleted(run, state, says):
    says('One.', '/discard')

    finished = run('--agent cashier:talker')

    assert 'saved;' not in finished.err
    assert list((state / 'conversations').iterdir()) == []


def test_another_directory_has_other_conversations(run, folder, state, says, monkeypatch):
    says('One.')
    run('--agent cashier:talker')
    (folder / 'below').mkdir()
    monkeypatch.chdir(folder / 'below')

    finished = run('--model test --continue Two.')

    assert finished.status == 2
    assert 'there is no conversation to continue in this directory' in finished.err


def test_the_model_can_be_named_by_the_environment(run, monkeypatch):
    monkeypatch.setenv(MODEL_VARIABLE, 'test')

    finished = run('--strict --no-os-sandbox Go.')

    assert finished.status == 0
    assert '→ read_file' in finished.out


def test_run_with_an_inbox_names_the_page_for_its_questions(run, state):
    finished = run('--agent cashier:talker --inbox Hello.')

    assert finished.status == 0
    assert 'questions are also in your inbox: `tool-approval serve` shows them' in finished.err


def test_prompt_appears_before_the_slow_imports(
    run,
):
    late = ('pydantic', 'pydantic_ai', 'asyncio', 'yaml', 'tree_sitter', 'tool_approval.settings')
    program = f'import sys, tool_approval.cli.run; print([name for name in {late} if name in sys.modules])'

    # Without the plugins of a development environment, such as coverage.
    shown = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, env={})

    assert shown.stdout == '[]\n'

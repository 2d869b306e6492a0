"""Several edits of one file, approved before any of them runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai_deferred import Agent
from tool_approval.integrations.pydantic_ai import Approvals, ApprovalToolset
from tool_approval.integrations.pydantic_ai.file_toolset import FileToolset
from tool_approval.testing import approve_all
from tool_approval.tools.file_sandbox import own_edits as module
from tool_approval.tools.file_sandbox.content import MISSING, state_of_bytes
from tool_approval.tools.file_sandbox.operations import edited
from tool_approval.tools.file_sandbox.own_edits import OwnEdits

from tests.approval.parts import ListSink
from tests.loop.scripted import call, returns, scripted
from tests.tables import table
from tool_approval import ApprovalController

from .world import context

CONFIG = {'paths': {'ws': {'root': '.', 'mode': 'rw', 'write_approval': True}}}
TEXT = 'one\ntwo\nthree\nfour\n'
CHANGED = 'The call changed after it was approved, so it was not run.'


def edit(old, new, path='a.txt', **more):
    return {'path': path, 'old_text': old, 'new_text': new, **more}


def run(folder, *edits, text=TEXT, between=None):
    """Let an approver approve all edits of one response; what the model is told, and the file as it is then."""
    file = folder / 'a.txt'
    file.write_text(text)
    log = ListSink()
    controller = ApprovalController(ui=approve_all(), audit=log)
    tools = FileToolset(CONFIG, folder)
    calls = [call('edit_file', str(number), **each) for number, each in enumerate(edits, start=1)]
    toolset = ApprovalToolset(tools, controller)
    agent = Agent(scripted(calls, 'done'), toolsets=[toolset], name='editor')
    if between is not None:
        perform = tools.files.run

        def interrupted(name, arguments):
            told = perform(name, arguments)
            between(file)
            return told

        tools.files.run = interrupted
    result = agent.run_sync('go', deferred_tool_handler=Approvals(controller, default='none'))
    told = [text for _, (text, _) in sorted(returns(result.all_messages()).items())]
    return told, file.read_text(), log.outcomes()


def test_approved_edits_of_one_file_run_in_order(tmp_path):
    edits = [edit('two\n', 'TWO\nand a half\n'), edit('four', 'FOUR'), edit('one', ''), edit('three', 'THREE')]

    told, text, outcomes = run(tmp_path, *edits)

    assert text == '\nTWO\nand a half\nTHREE\nFOUR\n'
    assert outcomes == ['executed'] * 4
    assert all(each.startswith('Replaced ws:a.txt ') for each in told)


@table(
    'second',
    [
        edit('TWO', 'x'),  # what the first has written
        edit('two\nthree', 'x'),  # what the first has replaced
        edit('TWO\nthree', 'x'),
        edit('o', 'x', replace_all=True),  # also in the line that the first has written
    ],
)
def test_edits_that_overlap_do_not_both_run(tmp_path, second):
    first = edit('two', 'TWO o')

    told, text, outcomes = run(tmp_path, first, second)

    assert text == TEXT.replace('two', 'TWO o')
    assert outcomes[0] == 'executed'
    assert not told[1].startswith('Replaced')


def test_edits_of_one_line_do_not_both_run(tmp_path):
    told, text, outcomes = run(tmp_path, edit('tw', 'TW'), edit('wo', 'WO'), edit('two', 'x'), text='a two b\n')

    assert (text, outcomes) == ('a TWo b\n', ['executed', 'refused', 'refused'])
    assert told[1:] == [CHANGED] * 2


@pytest.mark.parametrize('change', [lambda text: f'{text}five\n', lambda text: text.replace('one', 'eins')])
def test_change_by_another_process_between_two_edits_is_refused(tmp_path, change):
    told, text, outcomes = run(
        tmp_path,
        edit('two', 'TWO'),
        edit('four', 'FOUR'),
        between=lambda file: file.write_text(change(file.read_text())),
    )

    assert (text, outcomes) == (change(TEXT.replace('two', 'TWO')), ['executed', 'refused'])
    assert told[1] == CHANGED


def test_an_edit_that_is_asked_about_after_another_may_change_what_that_wrote(world):
    tools = world.tools({'paths': {'notes': {'root': 'notes', 'mode': 'rw', 'write_approval': True}}})
    (world.ws / 'notes/n.txt').write_text(TEXT)
    for given_edit in (edit('two', 'TWO', 'notes/n.txt'), edit('TWO', '2', 'notes/n.txt')):
        request = tools.check_approval(context('edit_file', **given_edit))
        tools.present(request)
        tools.run('edit_file', given_edit)

    assert (world.ws / 'notes/n.txt').read_text() == TEXT.replace('two', '2')


@pytest.mark.parametrize('content', [None, b'\0two'])
def test_an_edit_of_what_is_not_text_is_bound_to_the_file_as_it_is(world, content):
    paths = {'notes': {'root': 'notes', 'mode': 'rw', 'write_approval': True, 'read_approval': True}}
    if content is not None:
        (world.ws / 'notes/n.txt').write_bytes(content)

    request = world.tools({'paths': paths}).check_approval(context('edit_file', **edit('two', 'x', 'notes/n.txt')))

    state = MISSING if content is None else state_of_bytes(content)
    assert request.bound_to == {'files': {'notes:n.txt': state}}


LINES = st.lists(st.sampled_from(['a', 'bb', 'c c', '', 'ä']), min_size=1, max_size=6).map('\n'.join)


@given(text=LINES, olds=st.lists(st.sampled_from(['a', 'b', 'bb', 'c c', '\n', 'a\n', '\nb', 'ä', ' ']), max_size=4))
def test_a_later_edit_changes_only_lines_that_the_earlier_ones_left_alone(text, olds):
    own, now, before = OwnEdits(), text, 'state 0'
    for number, old in enumerate(olds, start=1):
        arguments = edit(old, f'<{number}>', replace_all=True)
        if old not in now:
            continue
        if own.origin('f', before, now, arguments) == 'state 0':
            touched = [now[begin:end] for begin, end in module._lines(now, module._places(now, arguments))]
            assert not any('<' in each for each in touched)
        after = f'state {number}'
        own.add('f', before, after, now, arguments)
        now, before = edited(now, arguments, 10_000), after


@pytest.mark.parametrize(('is_end', 'moved'), [(False, 3), (True, 10)])
def test_a_position_in_a_replaced_text_moves_to_one_end_of_the_new_text(is_end, moved):
    assert module._moved(5, [(3, 8)], 2, is_end=is_end) == moved


def test_only_the_newest_edits_are_known(monkeypatch):
    monkeypatch.setattr(module, 'MOST_EDITS', 2)
    monkeypatch.setattr(module, 'MOST_FILES', 1)
    own, text = OwnEdits(), 'a\nb\nc\nd\n'
    for state, old in enumerate('abc'):
        own.add('f', str(state), str(state + 1), text, edit(old, old.upper()))
        text = text.replace(old, old.upper())

    assert own.origin('f', '3', text, edit('d', 'x')) == '1'

    own.add('g', '0', '1', 'a', edit('a', 'b'))

    assert own.origin('f', '3', text, edit('d', 'x')) == '3'
    assert own.origin('g', '1', 'b', edit('', 'x')) == '0'

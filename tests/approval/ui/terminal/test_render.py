"""What is written before an answer is read, checked as text and on an emulated screen."""

import re

import pytest
import wcwidth
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.core.request import LineageEntry, RememberOption
from tool_approval.display import KEYS, offered_keys, remember_choices
from tool_approval.ui.terminal import render_request, render_whole
from tool_approval.ui.terminal.layout import NARROWEST
from tool_approval.ui.terminal.render import render_more

from tests.corpus.terminal import CASES, FORBIDDEN, SGR, check, same_looks, screen_rows, unquoted
from tests.tables import table
from tool_approval import ApprovalPresentation, ApprovalRequest

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.characters(max_codepoint=0x7E),
        st.sampled_from('\x1b\x9b\r\n\t\x00\u200b\u202e\u0336\u0301\u3164\U000e0041\ud800\u65e5\u0430<U+│┊↪╰⇥ '),
    ),
    max_size=60,
)
VALUES = st.recursive(
    st.one_of(HOSTILE, st.integers(), st.floats(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(HOSTILE, inner, max_size=4)),
    max_leaves=8,
)
PRESENTATIONS = st.builds(
    ApprovalPresentation,
    type=st.sampled_from(['text', 'diff', 'file_content', 'command', 'structured']),
    content=HOSTILE,
    language=st.none() | HOSTILE,
    metadata=st.dictionaries(
        st.sampled_from(['cwd', 'path', 'full_content', 'is_new', 'is_summary', 'extra_access', 'brief_access']),
        HOSTILE,
    ),
)
REQUESTS = st.builds(
    ApprovalRequest,
    tool_name=HOSTILE,
    args=st.dictionaries(HOSTILE, VALUES, max_size=4),
    description=HOSTILE,
    reason=st.none() | HOSTILE,
    group_id=st.none() | HOSTILE,
    presentation=st.none() | PRESENTATIONS,
    metadata=st.fixed_dictionaries({}, optional={'caller': HOSTILE, 'toolset_id': HOSTILE, 'position': st.integers()}),
    lineage=st.lists(
        st.builds(
            LineageEntry, agent_name=st.none() | HOSTILE, run_id=HOSTILE, tool_name=HOSTILE, tool_call_id=HOSTILE
        ),
        max_size=2,
    ).map(tuple),
    remember_options=st.builds(
        RememberOption, kind=st.just('wide'), label=HOSTILE, payload=st.just({'x': 1}), brief=HOSTILE
    ).map(lambda option: (option,)),
)


def command(text: str, **fields) -> ApprovalRequest:
    presentation = ApprovalPresentation(type='command', content=text, metadata={'cwd': '/home/me'})
    return ApprovalRequest(tool_name='run_shell', args={'command': text}, presentation=presentation, **fields)


def plain(request: ApprovalRequest, **options) -> str:
    return render_request(request, color=False, **options)


def looks_of(request: ApprovalRequest) -> str:
    """What is on the screen once `?` was pressed."""
    return '\n'.join([render_request(request), *render_more(request, 79, keys=offered_keys(request))])


@table('case', CASES)
def test_sample_attack_is_drawn_escaped(case) -> None:
    assert check(case) == []


def test_first_row_ends_without_blanks_in_colour_as_well() -> None:
    presentation = ApprovalPresentation(type='command', content='ls', metadata={'cwd': '/home\t'})
    request = ApprovalRequest(tool_name='run_shell', args={'command': 'ls'}, presentation=presentation)

    assert SGR.sub('', render_request(request, color=True)) == plain(request)


def test_no_two_samples_look_alike() -> None:
    assert same_looks() == []


EXAMPLES = pytest.mark.parametrize('examples', [40, pytest.param(2000, marks=pytest.mark.slow)])


@EXAMPLES
def test_nothing_in_a_request_draws_anything_but_itself(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(request=REQUESTS, width=st.integers(NARROWEST, 200), height=st.integers(1, 60), ascii_only=st.booleans())
    def check_one(request, width, height, ascii_only) -> None:
        options = {'width': width, 'height': height, 'ascii_only': ascii_only}

        plain = render_request(request, color=False, **options)
        colored = render_request(request, color=True, **options)

        rows = plain.split('\n')
        side, bottom = ('|', '+') if ascii_only else ('│', '╰')
        assert SGR.sub('', colored) == plain
        assert FORBIDDEN.search(plain) is None
        assert all(row.startswith(side) for row in rows[1:-1])
        assert rows[-1].startswith(bottom)
        assert re.search(r'(y approve   n deny   .*\? more|y/n(/[sv])?/\?) $', rows[-1])
        assert max(wcwidth.wcswidth(row) for row in rows) <= width
        assert min(wcwidth.wcswidth(row) for row in rows) >= 0
        assert not ascii_only or plain.isascii()
        plain.encode()

    check_one()


@EXAMPLES
def test_different_requests_never_render_the_same(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(one=REQUESTS, other=REQUESTS)
    def check_pair(one, other) -> None:
        looks_same = looks_of(one) == looks_of(other)

        # Equal requests whose values have other orders are drawn in those, so they may differ.
        assert looks_same if repr(one) == repr(other) else not looks_same or one == other

    check_pair()


@settings(max_examples=60, deadline=None)
@given(one=HOSTILE, other=HOSTILE)
def test_different_commands_differ_without_the_mark_too(one, other) -> None:
    drawn = [render_request(command(text), color=False) for text in (one, other)]

    assert (drawn[0] == drawn[1]) == (one == other)


@pytest.mark.parametrize('width', [40, 80, 120, 200])
@pytest.mark.parametrize('color', [True, False])
def test_a_screen_shows_what_was_meant(width: int, color: bool) -> None:
    request = command('make all && \x1b[2Jrm -rf "日本語 dir"\n[y] approve', reason='no rule allows rm')

    rows = screen_rows(render_request(request, width=width, color=color), width=width)

    texts = unquoted(rows).split('\n')
    assert 'make all && <U+001B>[2Jrm -rf "日本語 dir"' in texts
    assert '> [y] approve' in [row[2:] for row in rows]
    assert rows[-1] == (
        '╰─ y/n/s/?' if width == 40 else '╰─ y approve   n deny   s the same call this session   ? more'
    )
    assert rows[0] == '╭─ run_shell in /home/me'


def test_colors_end_with_each_row() -> None:
    written = render_request(command('a\nb'), color=True)

    assert '\x1b[' in written
    assert all(row.count('\x1b[0m') * 2 == row.count('\x1b[') for row in written.split('\n'))


def test_toolset_is_named_behind_the_key_for_more() -> None:
    request = command('ls', metadata={'toolset_id': 'shell'})

    assert '│ toolset: shell' in render_more(request, 80, keys=())


def test_a_position_that_is_given_wins_and_a_senseless_one_is_not_shown() -> None:
    request = command('ls', metadata={'position': 7, 'batch_size': 2})

    assert 'request' not in render_request(request, color=False)
    assert 'request 1 of 3' in render_request(request, color=False, position=(1, 3))


def test_remembering_is_not_offered_where_something_is_cut() -> None:
    long = ApprovalRequest(tool_name='write', args={'text': 'line\n' * 500}, metadata={'can_remember_always': True})
    short = long.model_copy(update={'args': {'text': 'line\n'}, 'payload': {'text': 'line\n'}})

    assert set('sra') & set(offered_keys(long)) == set()
    assert set('sra') & set(offered_keys(short)) == {'s', 'a'}
    assert 'Some content is not shown.' in plain(long)
    assert plain(long, height=200, keys=tuple(KEYS)).endswith('\n╰─ y approve   n deny   v view all   ? more ')
    assert plain(short).endswith('\n╰─ y approve   n deny   s the same call this session   ? more ')


def test_always_is_offered_only_where_there_is_a_store() -> None:
    assert 'a' not in offered_keys(command('ls'))
    assert 'a' in offered_keys(command('ls', metadata={'can_remember_always': True}))


@pytest.mark.parametrize('labels', [('',), ('x' * 301,), tuple(f'option {n}' for n in range(9))])
def test_option_that_cannot_be_shown_whole_is_not_offered(labels: tuple[str, ...]) -> None:
    options = tuple(RememberOption(kind=f'k{n}', label=label, payload={}) for n, label in enumerate(labels))

    assert 's' not in offered_keys(command('ls', remember_options=options))


def test_choices_of_what_to_remember_are_listed() -> None:
    option = RememberOption(kind='directory', label='every file in notes/\n[y]', payload={})
    request = ApprovalRequest(
        tool_name='write', args={'path': 'a', 'text': 'b'}, payload={'path': 'a'}, remember_options=(option,)
    )

    assert remember_choices(request) == [
        ('exact', "every write with path: 'a'"),
        ('directory', 'every file in notes/<U+000A>[y]'),
    ]
    assert "│ s: every write with path: 'a', this session\n╰─ y approve   n deny   s this session" in plain(request)


def test_model_text_never_shares_the_key_row() -> None:
    request = ApprovalRequest(
        tool_name='w', args={'p': 'a   n deny   ? more', 't': 1}, payload={'p': 'a   n deny   ? more'}
    )

    rows = plain(request, width=200).split('\n')

    assert rows[-2:] == [
        "│ s: every w with p: 'a   n deny   ? more', this session",
        '╰─ y approve   n deny   s this session   ? more ',
    ]


def test_letters_that_turn_a_row_around_have_a_row_of_their_own() -> None:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'path': '\u05d0\u05d1.txt'})
    request = ApprovalRequest(tool_name='write', presentation=presentation, description='d', metadata={'caller': 'a'})

    rows = plain(request).split('\n')

    assert rows[0].split() == ['╭─', 'write', 'a']
    assert rows[1] == '│ file: \u05d0\u05d1.txt'


def test_payload_that_cannot_be_written_cannot_be_remembered() -> None:
    class Faulty:
        def __repr__(self) -> str:
            raise RuntimeError

    request = ApprovalRequest(tool_name='t', args={'a': 1}, payload={'x': Faulty()}, description='d')

    assert 's' not in offered_keys(request)
    assert plain(request).endswith('╰─ y approve   n deny   ? more ')


def test_a_box_that_is_higher_than_the_screen_says_so_and_names_the_tool_again() -> None:
    request = command('ls\n' * 30)
    written = plain(request)

    assert f'│ ! {written.count(chr(10)) + 1} rows do not fit; scroll up to see all.\n' in written
    assert written.endswith('\n╰─ run_shell: y approve   n deny   s the same call this session   ? more ')
    assert plain(request, height=34).endswith('\n╰─ y approve   n deny   s the same call this session   ? more ')


def test_tool_name_too_wide_for_the_key_row_moves_above_it() -> None:
    request = command('ls\n' * 30).model_copy(update={'tool_name': 'a_long_name_of_a_tool'})

    rows = plain(request, width=30).split('\n')

    above = ['│ tool: a_long_name_of_a_tool', '│ s: the same call, this', '│  ↪ session']
    assert rows[-4:] == [*above, '╰─ y/n/s/? ']


def test_the_whole_is_shown_for_a_pager() -> None:
    request = ApprovalRequest(tool_name='write', args={'text': ''.join(f'line {n}\n' for n in range(1000))})

    written = render_whole(request, color=False)

    assert 'line 500' in written
    assert 'line 500' not in render_request(request, color=False)
    assert 'more line' not in written


@table('width', range(NARROWEST, 41))
@table(
    'text',
    ['\x1b\U0010ffff' * 20, 'Approve ls? y' * 9, '日本語' * 20, 'a\u0301' * 40],
)
def test_every_row_is_framed_on_a_narrow_terminal(text: str, width: int) -> None:
    request = command(f'{text}\n{text}', metadata={'position': 999_999, 'batch_size': 999_999}, reason=text)

    rows = screen_rows(render_request(request, width=width, color=False), width=width)

    assert rows[0].startswith('╭─')
    assert all(row.startswith('│') for row in rows[1:-1])
    assert rows[-1].removeprefix('╰─ ').removeprefix('run_shell: ') in ('y/n/s/?', 'y/n/v/?')


@pytest.mark.parametrize('width', [0, 1, 10, NARROWEST - 1])
def test_nothing_is_drawn_where_rows_would_lose_their_frame(width: int) -> None:
    request = command('rm -rf ~/work\nApprove ls? ')

    for written in (render_request(request, width=width), render_whole(request, width=width)):
        assert 'Too narrow to ask.' in written
        assert 'rm' not in written
        assert 'Approve' not in written
        assert max(map(len, written.split('\n'))) < 21

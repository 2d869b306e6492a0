"""What is written before an answer is read, checked as text and on an emulated screen."""

import re

import pytest
import wcwidth
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tool_approval.core.request import LineageEntry, RememberOption
from tool_approval.ui.terminal import KEYS, offered_keys, remember_choices, render_request, render_whole
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


EDIT = ApprovalRequest(
    tool_name='edit_file',
    args={'path': 'greeting.py', 'old_text': "return 'Hello ' + name", 'new_text': "return f'Hello, {name}!'"},
    payload={'root': 'project', 'path': 'greeting.py'},
    description='Edit project:greeting.py',
    reason='Changes in project need approval.',
    metadata={'caller': 'editor', 'toolset_id': 'files'},
    presentation=ApprovalPresentation(
        type='diff',
        content="""\
--- greeting.py
+++ greeting.py
@@ -3,4 +3,4 @@
 
 def greet(name):
-    return 'Hello ' + name
+    return f'Hello, {name}!'
 
""",
        metadata={'path': 'greeting.py', 'is_usual': True},
    ),
    remember_options=(
        RememberOption(
            kind='file',
            label='edit_file for project:greeting.py, whatever is written',
            payload={'root': 'project', 'path': 'greeting.py'},
            brief='edits of greeting.py',
        ),
        RememberOption(kind='root', label='edit_file for everything in project', payload={'roots': ['project']}),
    ),
)
COMMIT = ApprovalRequest(
    tool_name='run_shell',
    args={'command': 'git commit -am "Greet by name"'},
    description='Run: git commit -am "Greet by name"',
    metadata={'caller': 'operator'},
    presentation=ApprovalPresentation(
        type='command',
        content='git commit -am "Greet by name"',
        metadata={'cwd': '/home/ada/shop', 'extra_access': ['writes to .git'], 'is_usual': True},
    ),
    reason='no rule matches, and the default is to ask',
    remember_options=(
        RememberOption(
            kind='sub-command',
            label='every plain `git commit` in this directory',
            payload={'program': ['git', 'commit']},
            brief='git commit',
        ),
    ),
)


@table('case', CASES)
def test_sample_attack_is_drawn_escaped(case) -> None:
    assert check(case) == []


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


def test_an_edit_is_the_changed_lines_between_two_rows() -> None:
    assert plain(EDIT) == snapshot("""\
╭─ edit_file greeting.py                                                  editor
│ 5 -     return 'Hello ' + name
│ 5 +     return f'Hello, {name}!'
╰─ y approve   n deny   s edits of greeting.py this session   ? more \
""")


def test_a_command_says_what_more_it_may_touch() -> None:
    assert plain(COMMIT) == snapshot("""\
╭─ run_shell in /home/ada/shop                                          operator
│ $ git commit -am "Greet by name"
│ extra access: writes to .git
╰─ y approve   n deny   s git commit this session   ? more \
""")


def test_text_too_wide_for_the_key_row_moves_above_it() -> None:
    assert plain(COMMIT, width=50) == snapshot("""\
╭─ run_shell in /home/ada/shop            operator
│ $ git commit -am "Greet by name"
│ extra access: writes to .git
│ s: git commit, this session
╰─ y approve   n deny   s this session   ? more \
""")
    assert plain(COMMIT, width=24) == snapshot("""\
╭─ run_shell    operator
│ in: /home/ada/shop
│ $ git commit -am
│  ↪ "Greet by name"
│ extra access: writes
│  ↪ to .git
│ s: git commit, this
│  ↪ session
╰─ y/n/s/? \
""")


def test_box_names_caller_place_and_position() -> None:
    request = command(
        'ls',
        reason='no rule allows ls',
        description='List the project',
        run_id='r',
        metadata={
            'caller': 'research',
            'worker': 'crawler',
            'toolset_id': 'shell',
            'missing_capabilities': ['net', 'a, b'],
            'position': 2,
            'batch_size': 5,
        },
        lineage=(LineageEntry(agent_name='main', run_id='r', tool_name='ask', tool_call_id='c'),),
    )

    assert plain(request) == snapshot("""\
╭─ run_shell in /home/me                                          request 2 of 5
│ agent: research, called by main through ask
│ worker: crawler
│ about: List the project
│ why: no rule allows ls
│ $ ls
│ grants: net, "a, b", to this tool until the run ends
╰─ y approve   n deny   s the same call this session   ? more \
""")
    assert plain(request, width=100).split('\n')[0].endswith('   research, called by main through ask   request 2 of 5')
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


def test_what_remembering_covers_is_numbered() -> None:
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


def test_a_name_that_is_too_long_for_the_first_row_has_one_of_its_own() -> None:
    presentation = ApprovalPresentation(type='text', content='x', metadata={'path': 'b'})
    request = ApprovalRequest(tool_name='a_tool_' * 12, presentation=presentation, description='d')

    # A path alone would be taken for the name of the tool.
    assert plain(request) == snapshot("""\
╭─
│ tool: a_tool_a_tool_a_tool_a_tool_a_tool_a_tool_a_tool_a_tool_a_tool_a_tool_a_
│  ↪tool_a_tool_
│ file: b
│ about: d
│ ┊ x
╰─ y approve   n deny   s the same call this session   ? more \
""")


def test_a_box_that_is_higher_than_the_screen_says_so_and_names_the_tool_again() -> None:
    request = command('ls\n' * 30)
    written = plain(request)

    assert f'│ ! {written.count(chr(10)) + 1} rows: read from the top.\n' in written
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


def test_signs_of_a_diff_stay_where_its_lines_are_broken() -> None:
    diff = f'--- a\n+++ a\n@@ -1 +1 @@\n-{"x" * 50}\n+{"y" * 50}\n'
    presentation = ApprovalPresentation(type='diff', content=diff)
    request = ApprovalRequest(tool_name='edit', presentation=presentation)

    written = render_request(request, width=40, color=False)

    assert f'│ 1 - {"x" * 34}\n│   -↪{"x" * 16}\n│ 1 + {"y" * 34}\n│   +↪{"y" * 16}\n' in written


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


def test_line_numbers_give_way_to_the_text_where_both_do_not_fit() -> None:
    diff = '@@ -999999999,2 +999999999,2 @@\n-a\n-b\n+\U0010ffff\n+d\n'
    request = ApprovalRequest(tool_name='edit', presentation=ApprovalPresentation(type='diff', content=diff))

    assert '│ 1000000000 - b\n' in plain(request, width=25)
    assert '│ - b\n' in plain(request, width=24)


@pytest.mark.parametrize('width', [0, 1, 10, NARROWEST - 1])
def test_nothing_is_drawn_where_rows_would_lose_their_frame(width: int) -> None:
    request = command('rm -rf ~/work\nApprove ls? ')

    for written in (render_request(request, width=width), render_whole(request, width=width)):
        assert 'Too narrow to ask.' in written
        assert 'rm' not in written
        assert 'Approve' not in written
        assert max(map(len, written.split('\n'))) < 21

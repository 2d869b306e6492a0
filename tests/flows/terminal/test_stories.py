"""The operator's stories, each with an agent on real files and commands, in a real pseudo-terminal."""

import re

import pytest
from inline_snapshot import snapshot

from .screen import Story

READ = ['read_file', {'path': 'notes.txt'}]
WRITE = ['write_file', {'path': 'notes.txt', 'content': 'one\ntwo\n'}]


def stable(shown: str) -> str:
    """The digest of a request differs with the directory and the process."""
    return re.sub(r'[0-9a-f]{16}', '0123456789abcdef', shown)


def decisions(story: Story) -> list[tuple[object, ...]]:
    entries = [entry for entry in story.entries() if entry['event'] == 'decision']
    return [(entry['tool_name'], entry['approved'], *entry['decided_by'], entry.get('note')) for entry in entries]


def test_question_pauses_the_run_before_any_side_effect_and_earlier_output_stays_visible(story: Story) -> None:
    screen = story.start([{'say': 'I will write your notes.', 'calls': [WRITE]}])

    shown = screen.wait_for_question('╭─ write_file')

    assert stable(shown) == snapshot("""\
I will write your notes.

╭─ write_file notes.txt (new)                                              clerk
│ 1 ┊ one
│ 2 ┊ two
╰─ y approve   n deny   s writes to notes.txt this session   ? more\
""")
    assert not (story.cwd / 'notes.txt').exists()
    assert [entry['event'] for entry in story.entries()] == ['question']


def test_approved_call_is_executed_and_the_same_run_goes_on(story: Story) -> None:
    screen = story.start([{'say': 'I write.', 'calls': [WRITE]}, {'say': 'I look at it.', 'calls': [READ]}])
    screen.wait_for_question('╭─ write_file')

    screen.type('y')
    shown = screen.wait_for('The end.')

    assert stable(shown) == snapshot("""\
I write.

╭─ write_file notes.txt (new)                                              clerk
│ 1 ┊ one
│ 2 ┊ two
✓ ada approved write_file: Write project:notes.txt
  write_file: Wrote project:notes.txt (8 bytes).
I look at it.
  read_file: one
two

done
The end.\
""")
    assert (story.cwd / 'notes.txt').read_text() == 'one\ntwo\n'
    assert decisions(story) == snapshot([('write_file', True, 'ada', None)])


def test_a_denial_with_a_note_reaches_the_model_and_the_log(story: Story) -> None:
    screen = story.start([{'calls': [WRITE]}])
    screen.wait_for_question('╭─ write_file')

    screen.type('d')
    screen.wait_for_question('Note: ')
    screen.type('Ask me tomorrow, ple')
    screen.wait_for('Note: Ask me tomorrow, ple')
    screen.type('\x7f\x7f\x7f')
    screen.wait(lambda: screen.lines[-1] == 'Note: Ask me tomorrow,', 'three characters less')
    screen.type('\r')
    shown = screen.wait_for('The end.')

    assert '\n'.join(shown.splitlines()[-4:]) == snapshot("""\
✗ ada denied write_file (Ask me tomorrow,): Write project:notes.txt
  write_file: The approver denied this call, so it was not run: Ask me tomorrow,
done
The end.\
""")
    assert decisions(story) == snapshot([('write_file', False, 'ada', 'Ask me tomorrow,')])
    assert not (story.cwd / 'notes.txt').exists()


def test_session_approval_is_listed_and_revoked_and_ends_with_the_run(story: Story) -> None:
    screen = story.start([{'calls': [WRITE]}, {'calls': [WRITE]}], [{'calls': [WRITE]}])
    screen.wait_for_question('╭─ write_file')
    screen.type('r')
    screen.wait_for_question('Press 1 to 3; Esc goes back.')
    chosen_from = screen.text
    screen.type('2')

    # The second call of the same run is not asked about; the second run is.
    screen.wait_for('  write_file: Replaced project:notes.txt (8 bytes).\ndone')
    screen.wait_for_question('╭─ write_file')
    screen.type('l')
    screen.wait_for_question("Press an approval's number to revoke it; Esc goes back.")
    listed = screen.text
    screen.type('1')
    screen.wait_for('Revoked: session  write_file')
    screen.wait_for_question('╭─ write_file')
    screen.type('n')
    screen.wait_for('The end.')

    assert '\n'.join(chosen_from.splitlines()[-5:]) == snapshot("""\
Approve for this session:
  1  write_file for project:notes.txt, with any content
  2  write_file for everything directly in project:/
  3  write_file for everything in project
Press 1 to 3; Esc goes back.\
""")
    assert '\n'.join(listed.splitlines()[-4:]) == snapshot("""\
Remembered (1):
  1  session  write_file: write_file for everything directly in project:/, by
    ↪ ada
Press an approval's number to revoke it; Esc goes back.\
""")
    assert decisions(story) == snapshot(
        [
            ('write_file', True, 'ada', None),
            (
                'write_file',
                True,
                'ada',
                'remembered: write_file for everything directly in project:/',
            ),
            ('write_file', False, 'ada', None),
        ]
    )


def test_a_command_is_shown_whole_with_its_directory(story: Story) -> None:
    command = 'printf "%s\\n" one two \\\n  | sort -r > sorted.txt && echo sorted'
    screen = story.start([{'say': 'I sort.', 'calls': [['run_shell', {'command': command}]]}])

    shown = screen.wait_for_question('╭─ run_shell')
    screen.type('y')
    screen.wait_for('The end.')

    assert str(story.cwd) in re.sub(r'\n│[ ↪┊]*', '', shown)
    assert 'sort -r > sorted.txt && echo sorted' in shown
    assert (story.cwd / 'sorted.txt').read_text() == 'two\none\n'


@pytest.mark.parametrize(('key', 'is_run'), [('y', True), ('s', True), ('n', False), ('q', False)])
def test_a_command_is_approved_denied_or_the_run_is_stopped(key: str, is_run: bool, story: Story) -> None:
    screen = story.start([{'calls': [['run_shell', {'command': 'touch made'}]]}])
    screen.wait_for_question('╭─ run_shell')

    screen.type(key)
    status = screen.end()

    assert (story.cwd / 'made').exists() == is_run
    assert (status, 'The end.' in screen.text) == ((-2, False) if key == 'q' else (0, True))


def test_question_of_an_agent_inside_a_tool_names_that_agent(story: Story) -> None:
    screen = story.start([{'calls': [WRITE]}], nested=True)

    shown = screen.wait_for_question('╭─ write_file')
    screen.type('y')
    screen.wait_for('The end.')

    assert stable(shown) == snapshot("""\
I delegate.
I go on.

╭─ write_file notes.txt (new)             clerk, called by boss through delegate
│ 1 ┊ one
│ 2 ┊ two
╰─ y approve   n deny   s writes to notes.txt this session   ? more\
""")


def test_an_agent_inside_a_tool_is_stopped_with_all_above_it(story: Story) -> None:
    screen = story.start([{'calls': [WRITE]}], nested=True)
    screen.wait_for_question('╭─ write_file')

    screen.type('q')

    assert screen.end() == -2
    assert not (story.cwd / 'notes.txt').exists()


def test_files_shared_with_another_agent_are_asked_about_one_by_one(story: Story) -> None:
    # An approval for an agent does not cover the agent inside its tool, nor another file.
    other = ['write_file', {'path': 'other.txt', 'content': 'three\n'}]
    screen = story.start([{'calls': [WRITE]}, {'calls': [WRITE]}, {'calls': [other]}], nested=True)
    screen.wait_for_question('╭─ write_file')
    screen.type('s')

    screen.wait_for_question('╭─ write_file other.txt (new)')
    screen.type('n')
    screen.wait_for('The end.')

    assert [path.name for path in story.cwd.iterdir()] == ['notes.txt']


def test_a_diff_is_shown_before_a_patch(story: Story) -> None:
    (story.cwd / 'app.py').write_text('def main():\n    port = 80\n    serve(port)\n')
    edit = ['edit_file', {'path': 'app.py', 'old_text': 'port = 80', 'new_text': 'port = 8080'}]
    screen = story.start([{'calls': [edit]}])

    shown = screen.wait_for_question('╭─ edit_file')
    screen.type('y')
    screen.wait_for('The end.')

    assert stable(shown) == snapshot("""\
I go on.

╭─ edit_file app.py                                                        clerk
│ 2 -     port = 80
│ 2 +     port = 8080
╰─ y approve   n deny   s edits of app.py this session   ? more\
""")
    assert 'port = 8080' in (story.cwd / 'app.py').read_text()


def test_an_overwritten_file_is_shown_as_a_diff(story: Story) -> None:
    (story.cwd / 'notes.txt').write_text('one\nzwei\n')
    screen = story.start([{'calls': [WRITE]}])

    shown = screen.wait_for_question('╭─ write_file')
    screen.type('n')
    screen.wait_for('The end.')

    assert stable(shown) == snapshot("""\
I go on.

╭─ write_file notes.txt                                                    clerk
│ 2 - zwei
│ 2 + two
╰─ y approve   n deny   s writes to notes.txt this session   ? more\
""")
    assert (story.cwd / 'notes.txt').read_text() == 'one\nzwei\n'


def test_a_large_new_file_is_cut_paged_and_cannot_be_remembered(story: Story) -> None:
    content = ''.join(f'line {number}\n' for number in range(1, 901))
    screen = story.start(
        [{'say': 'It is long.', 'calls': [['write_file', {'path': 'long.txt', 'content': content}]]}],
        screen={'lines': 24},
    )
    shown = screen.wait_for_question('╰─ write_file: ')

    screen.type('v')
    first = screen.wait_for('q: to the question')
    screen.type('G')
    last = screen.wait(lambda: 'line 900' in screen.text and 'space: on' in screen.lines[-1], 'the end of the text')
    screen.type('q')
    back = screen.wait_for_question('╰─ write_file: ')
    screen.type('y')
    screen.wait_for('The end.')

    assert stable('\n'.join(shown.splitlines()[-22:])) == snapshot("""\
│  34 ┊ line 34
│  35 ┊ line 35
│  36 ┊ line 36
│  37 ┊ line 37
│  38 ┊ line 38
│     ⋮ [849 more lines, 7,588 more characters]
│ 889 ┊ line 889
│ 890 ┊ line 890
│ 891 ┊ line 891
│ 892 ┊ line 892
│ 893 ┊ line 893
│ 894 ┊ line 894
│ 895 ┊ line 895
│ 896 ┊ line 896
│ 897 ┊ line 897
│ 898 ┊ line 898
│ 899 ┊ line 899
│ 900 ┊ line 900
│ ! Some content is not shown.
│ mark: 0123456789abcdef
│ ! 56 rows do not fit; scroll up to see all.
╰─ write_file: y approve   n deny   v view all   ? more\
""")
    assert '│ 1 ┊ line 1' in re.sub(' +', ' ', first)
    assert 'line 900' in last
    assert 'line 1 ' not in last
    # The pager's screen is another one, which this emulator does not have.
    assert screen.sent.count('\x1b[?1049h') == screen.sent.count('\x1b[?1049l') == 1
    assert back.endswith('? more')
    assert 'It is long.' in screen.scrolled
    assert (story.cwd / 'long.txt').read_text() == content


def test_calls_of_one_response_are_asked_about_one_after_the_other(story: Story) -> None:
    other = ['write_file', {'path': 'other.txt', 'content': 'three\n'}]
    screen = story.start([{'calls': [WRITE, other]}])

    screen.wait_for('request 1 of 2')
    screen.wait_for_question('╭─ write_file')
    screen.type('n')
    screen.wait_for('request 2 of 2')
    screen.wait_for_question('╭─ write_file')
    screen.type('y')
    screen.wait_for('The end.')

    assert sorted(path.name for path in story.cwd.iterdir()) == ['other.txt']


def test_always_is_kept_for_the_next_program(story: Story) -> None:
    store = str(story.log.with_name('approvals.json'))
    screen = story.start([{'calls': [WRITE]}], store=store)
    screen.wait_for_question('╭─ write_file')
    screen.type('a')
    screen.wait_for_question('Press 1 to 3; Esc goes back.')
    screen.type('1')
    screen.wait_for('The end.')
    screen.close()

    screen = story.start([{'calls': [WRITE]}], store=store)
    shown = screen.wait_for('The end.')

    assert '╭─' not in shown

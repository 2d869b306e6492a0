import os
import sys
import termios

import pytest
from inline_snapshot import snapshot
from tool_approval.core.memory import DENIED_BEFORE
from tool_approval.core.request import RejectedEdit

from tests.approval.parts import ListSink
from tests.approval.parts import decide as decided
from tool_approval import (
    ApprovalController,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalPresentation,
    ApprovalRequest,
    RememberOption,
    StoreError,
)

from .person import Person, Step, ask, looking, make_ui

REQUEST = ApprovalRequest(tool_name='delete', args={'path': 'notes.txt', 'force': False})
WIDER = REQUEST.model_copy(
    update={'remember_options': (RememberOption(kind='folder', label='every file in notes/', payload={'in': 'notes'}),)}
)
BRIEF = REQUEST.model_copy(
    update={'remember_options': (WIDER.remember_options[0].model_copy(update={'brief': 'notes'}),)}
)
LASTING = REQUEST.model_copy(update={'metadata': {'can_remember_always': True}})
LONG = REQUEST.model_copy(
    update={'presentation': ApprovalPresentation.of('file_content', ''.join(f'line {n}\n' for n in range(300)))}
)
Q = '╰─ '
COVERS = 'any simple `pip install` command, network (every host), writes to .venv included, in this directory'


ASKED = ApprovalRequest(tool_name='ask_user', args={'question': 'How many?'}, answers=('respond',))
OPEN = REQUEST.model_copy(update={'answers': ('approve', 'edit', 'respond')})
RESULT = 'Result: '


def decide(*steps: Step, request: ApprovalRequest = REQUEST, **options: object) -> ApprovalDecision:
    decisions, _ = ask(request, steps=steps, **options)
    return decisions[0]


@pytest.mark.parametrize(
    ('request_', 'steps', 'fields'),
    [
        (REQUEST, [(Q, 'y')], {'approved': True}),
        (REQUEST, [(Q, 'n')], {'approved': False}),
        (REQUEST, [(Q, 'd'), ('Note: ', 'Keep it'), ('Note: Keep it', '\r')], {'approved': False, 'note': 'Keep it'}),
        (REQUEST, [(Q, 'd'), ('Note: ', '\r')], {'approved': False}),
        (REQUEST, [(Q, 'd'), ('Note: ', 'x'), ('Note: x', '\x1b'), (Q, 'y')], {'approved': True}),
        (REQUEST, [(Q, 'x'), ('Note: ', '\r')], {'approved': False, 'remember': 'session'}),
        (
            WIDER,
            [(Q, 'x'), ('Note: ', 'No'), ('Note: No', '\r')],
            {'approved': False, 'remember': 'session', 'note': 'No'},
        ),
        (REQUEST, [(Q, 'x'), ('Note: ', '\x1b'), (Q, 'y')], {'approved': True}),
        (REQUEST, [(Q, 's')], {'approved': True, 'remember': 'session'}),
        (WIDER, [(Q, 's')], {'approved': True, 'remember': 'session'}),
        (BRIEF, [(Q, 's')], {'approved': True, 'remember': 'session', 'remember_option': 'folder'}),
        (LASTING, [(Q, 'a'), ('Press 1; ', '1')], {'approved': True, 'remember': 'always'}),
        (LASTING, [(Q, 'a'), ('Press 1; ', '\x1b'), (Q, 'n')], {'approved': False}),
        (WIDER, [(Q, 'r'), ('Press 1 to 2', '1')], {'approved': True, 'remember': 'session'}),
        (
            WIDER,
            [(Q, 'r'), ('Press 1 to 2', '2')],
            {'approved': True, 'remember': 'session', 'remember_option': 'folder'},
        ),
        (WIDER, [(Q, 'r'), ('Press 1 to 2', '\x1b'), (Q, 'n')], {'approved': False}),
        (REQUEST, [(Q, '?'), (Q, 'n')], {'approved': False}),
        (ASKED, [(Q, 'w'), (RESULT, ' 42 '), ('Result:  42', '\r')], {'approved': False, 'response': '42'}),
        (ASKED, [(Q, 'w'), (RESULT, '\x1b'), (Q, 'n')], {'approved': False}),
        (ASKED, [(Q, 'w'), (RESULT, '\r'), (Q, 'n')], {'approved': False}),
        (OPEN, [(Q, 'w'), (RESULT, 'x'), ('Result: x', '\r')], {'approved': False, 'response': 'x'}),
        (OPEN, [(Q, 'y')], {'approved': True}),
    ],
)
def test_each_key_gives_the_decision_it_is_labelled_with(
    request_: ApprovalRequest, steps: list[Step], fields: dict[str, object]
) -> None:
    assert decide(*steps, request=request_) == ApprovalDecision(**fields, decided_by=('ada',))


@pytest.mark.parametrize('key', ['a', 'r', 'l', 'z', '\r', ' ', '\x1b', 'yy'])
def test_a_key_that_is_not_offered_does_nothing(key: str) -> None:
    _, person = ask(REQUEST, steps=[(Q, key), (Q, 'n')])

    assert b'ignored' in person.sent


@pytest.mark.parametrize('key', ['s', 'r', 'a', 'x'])
def test_cut_request_cannot_be_remembered(key: str) -> None:
    request = LONG.model_copy(update={'metadata': {'can_remember_always': True}})

    decision = decide((Q, key), (Q, 'y'), request=request)

    assert decision.remember == 'none'


@pytest.mark.parametrize('key', ['q', '\x03', '\x1c', 'd\x03'])
def test_the_run_is_stopped_by_q_and_ctrl_c(key: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        decide((Q, key))


def test_ctrl_c_stops_the_prompt_while_a_note_is_typed() -> None:
    with pytest.raises(KeyboardInterrupt):
        decide((Q, 'd'), ('Note: ', '\x03'))


def test_one_line_stays_that_says_what_was_decided() -> None:
    _, person = ask(WIDER, steps=[(Q, 'r'), ('Press 1 to 2', '2')])

    assert person.text.splitlines()[-1] == snapshot('✓ ada approved delete for this session: every file in notes/')


def test_remembered_scope_is_shown_whole() -> None:
    option = RememberOption(kind='wide', label=COVERS, payload={'any': 1})
    request = REQUEST.model_copy(update={'remember_options': (option,)})

    _, person = ask(request, steps=[(Q, 'r'), ('Press 1 to 2', '2')], columns=50)

    assert '\n'.join(person.text.splitlines()[-4:]) == snapshot("""\
✓ ada approved delete for this session: any
  ↪ simple `pip install` command, network
  ↪ (every host), writes to .venv included, in
  ↪ this directory\
""")


def test_line_that_says_what_was_decided_is_escaped_and_fits() -> None:
    request = ApprovalRequest(
        tool_name='run', args={'c': '\x1b[2J\n' + 'x' * 500}, description='a\x1b[2J\nb' + 'x' * 500
    )
    _, person = ask(
        request,
        steps=[(Q, 'd'), ('Note: ', '\x1b[200~\x1b[2J\n!\x1b[201~'), ('Note: ', '\r')],
        columns=60,
    )

    assert person.text.splitlines()[-1] == snapshot('✗ ada denied run (<U+001B>[2J !): a<U+001B>[2J<U+000A>b...')


def test_all_of_a_long_text_is_viewed_page_by_page() -> None:
    pages: list[str] = []
    moves = [' ', 'j', 'k', 'b', 'G', 'g', '\x1b[6~', 'x', 'q']

    steps = [(Q, 'v'), *(('lines ', looking(pages, key)) for key in moves), (Q, 'n')]
    decision, person = ask(LONG, steps=steps, lines=24)

    assert [page.splitlines()[-1].split(' of')[0] for page in pages] == snapshot(
        [
            'lines 1-23',
            'lines 24-46',
            'lines 25-47',
            'lines 24-46',
            'lines 1-23',
            'lines 283-305',
            'lines 1-23',
            'lines 24-46',
            'lines 24-46',
        ]
    )
    assert decision[0].approved is False
    assert person.text.splitlines()[-1] == snapshot("✗ ada denied delete: path='notes.txt', force=False")


def test_a_denial_for_the_session_says_what_it_covers_before_and_after() -> None:
    seen: list[str] = []
    request = REQUEST.model_copy(update={'payload': {'path': 'notes.txt'}})
    steps = [(Q, 'x'), ('Note: ', looking(seen, 'No')), ('Note: No', '\r')]

    _, person = ask(request, steps=steps)

    assert seen[0].splitlines()[-4:] == snapshot(
        [
            'Deny now and, until the session ends, without asking:',
            "  every delete with path: 'notes.txt'",
            'The note may be empty. Enter denies; Esc goes back.',
            'Note:',
        ]
    )
    assert person.text.splitlines()[-1] == snapshot(
        "✗ ada denied for this session (No): every delete with path: 'notes.txt'"
    )


def test_a_call_that_was_denied_for_the_session_is_asked_about_again_only_after_that_is_revoked() -> None:
    log, memory, listed = ListSink(), ApprovalMemory(), list[str]()
    other = ApprovalRequest(tool_name='delete', args={'path': 'other.txt'})
    steps = [(Q, 'x'), ('Note: ', 'No'), ('Note: No', '\r')]
    steps += [(Q, 'l'), ("Press an approval's number", looking(listed, '1')), (Q, 'n'), (Q, 'y')]

    with Person(steps) as person:
        controller = ApprovalController(ui=make_ui(person, memory=memory), memory=memory, audit=log)
        decisions = [decided(controller, each) for each in (REQUEST, REQUEST, other, REQUEST)]
        person.assert_done()

    assert [decision.approved for decision in decisions] == [False, False, False, True]
    assert decisions[1].note == f'{DENIED_BEFORE} The note was: No'
    assert [(entry['how'], entry['decided_by']) for entry in log.decisions()] == snapshot(
        [('person', ['ada']), ('memory', ['ada']), ('person', ['ada']), ('person', ['ada'])]
    )
    assert [line.strip() for line in listed[0].splitlines() if 'by ada' in line] == snapshot(
        ["1  denied  delete: delete(path='notes.txt', force=False), by ada"]
    )


def test_remembered_approvals_are_listed_and_revoked() -> None:
    memory = ApprovalMemory()
    for number in range(11):
        request = ApprovalRequest(tool_name='delete', args={'path': f'{number}'}, session_id='s')
        memory.store(request, ApprovalDecision(approved=True, remember='session', decided_by=('ada',)))
    press = "Press an approval's number"

    decide((Q, 'l'), (press, 'm'), (press, '2'), (press, 'm'), (press, '1'), (press, '\x1b'), (Q, 'n'), memory=memory)

    assert [approval.label for approval in memory.list_approvals()] == [
        f"delete(path='{number}')" for number in range(1, 10)
    ]


def test_revoking_the_last_goes_back_to_the_question() -> None:
    memory = ApprovalMemory()
    memory.store(REQUEST, ApprovalDecision(approved=True, remember='session'))

    _, person = ask(REQUEST, steps=[(Q, 'l'), ("Press an approval's number", '1'), (Q, 'l'), (Q, 'n')], memory=memory)

    assert len(memory) == 0
    assert b'Nothing is remembered.' in person.sent


def test_untrusted_approval_list_shows_its_error() -> None:
    class Broken(ApprovalMemory):
        def list_approvals(self) -> list:
            raise StoreError('f', 'it is corrupt')

    _, person = ask(REQUEST, steps=[(Q, 'l'), (Q, 'n')], memory=Broken())

    assert b'it is corrupt' in person.sent


def test_a_lasting_approval_is_marked(tmp_path) -> None:
    from tool_approval.storage import FileApprovalStore

    memory = ApprovalMemory(FileApprovalStore(tmp_path / 'project', path=tmp_path / 'store' / 'approvals.json'))
    (tmp_path / 'project').mkdir()
    memory.store(REQUEST, ApprovalDecision(approved=True, remember='always', decided_by=('ada',)))
    memory.store(REQUEST, ApprovalDecision(approved=True, remember='session', decided_by=('ada',)))
    listed: list[str] = []

    decide((Q, 'l'), ("Press an approval's number", looking(listed, '\x1b')), (Q, 'n'), memory=memory)

    assert [line.strip() for line in listed[0].splitlines() if 'by ada' in line] == snapshot(
        [
            "1  session  delete: delete(path='notes.txt', force=False), by ada",
            "2  always  delete: delete(path='notes.txt', force=False), by ada",
        ]
    )


EDITOR = 'import sys, pathlib; file = pathlib.Path(sys.argv[-1]); text = file.read_text(); '


def editor(action: str) -> str:
    return f'{sys.executable} -c "{EDITOR}{action}"'


RENAMES = editor("file.write_text(text.replace('notes.txt', 'old.txt'))")


def test_changed_arguments_need_an_approval_of_their_own_and_are_never_remembered() -> None:
    decisions, person = ask(REQUEST, steps=[(Q, 'e'), (Q, 's'), (Q, 'x'), (Q, 'y')], VISUAL=RENAMES)

    assert decisions == [
        ApprovalDecision(approved=True, override_args={'path': 'old.txt', 'force': False}, decided_by=('ada',))
    ]
    assert 'old.txt' in person.text
    assert person.text.splitlines()[-1] == snapshot("✓ ada changed and approved delete: path='old.txt', force=False")


def test_changed_arguments_can_be_denied() -> None:
    assert decide((Q, 'e'), (Q, 'n'), EDITOR=RENAMES).override_args is None


@pytest.mark.parametrize(
    ('action', 'hint'),
    [
        ('pass', 'Nothing was changed.'),
        ("file.write_text('')", 'Nothing was changed.'),
        ('sys.exit(3)', 'Nothing was changed: the editor ended with status 3.'),
        ('file.unlink()', 'Nothing was changed: the edited file cannot be read'),
        ("file.write_bytes(b'\\xff')", 'Nothing was changed: the edited file cannot be read'),
    ],
)
def test_an_editor_that_changes_nothing_or_fails_leads_back(action: str, hint: str) -> None:
    decisions, person = ask(REQUEST, steps=[(Q, 'e'), (Q, 'y')], EDITOR=editor(action))

    assert decisions == [ApprovalDecision(approved=True, decided_by=('ada',))]
    assert hint in person.sent.decode()


def test_an_editor_that_does_not_exist_leads_back() -> None:
    _, person = ask(REQUEST, steps=[(Q, 'e'), (Q, 'n')], EDITOR='/nonexistent/editor')

    assert b'Nothing was changed: the editor cannot be started (FileNotFoundError)' in person.sent


def test_unreadable_edit_is_opened_again() -> None:
    action = "file.write_text('path: [' if '[' not in text else 'path: other')"

    decision = decide((Q, 'e'), ('Press e', 'e'), (Q, 'y'), EDITOR=editor(action))

    assert decision.override_args == {'path': 'other'}


def test_unreadable_edit_is_dropped() -> None:
    _, person = ask(
        REQUEST, steps=[(Q, 'e'), ('Press e', '\x1b'), (Q, 'y')], EDITOR=editor("file.write_text('path: *a')")
    )

    assert b'an alias is not allowed in line 1' in person.sent


def test_a_change_that_is_taken_back_leaves_the_request_as_it_was() -> None:
    action = "file.write_text(text.replace('old', 'notes') if 'old' in text else text.replace('notes', 'old'))"

    decision = decide((Q, 'e'), (Q, 'e'), (Q, 's'), EDITOR=editor(action))

    assert decision == ApprovalDecision(approved=True, remember='session', decided_by=('ada',))


def test_edited_file_is_private_and_deleted_afterwards(tmp_path) -> None:
    told = tmp_path / 'told'
    modes = '{file.stat().st_mode & 511:o} {file.parent.stat().st_mode & 511:o}'
    action = f"import os, stat; pathlib.Path('{told}').write_text(f'{{file}} {modes}')"

    decide((Q, 'e'), (Q, 'n'), EDITOR=editor(action.replace('"', "'")))

    name, *modes = told.read_text().split()
    assert modes == ['600', '700']
    assert not os.path.exists(os.path.dirname(name))


def test_without_an_editor_each_argument_is_edited_in_a_line() -> None:
    decision = decide(
        (Q, 'e'),
        ('path: "notes.txt"', '\x15'),
        ('path: ', 'old'),
        ('path: old', '\r'),
        ('path: old', '\x15"old"'),
        ('path: "old"', '\r'),
        ('force: false', '\r'),
        (Q, 'y'),
    )

    assert decision.override_args == {'path': 'old', 'force': False}


def test_without_an_editor_the_person_can_go_back() -> None:
    assert decide((Q, 'e'), ('path: ', '\x1b'), (Q, 'y')).override_args is None


def test_unedited_long_line_is_unchanged() -> None:
    request = ApprovalRequest(tool_name='delete', args={'path': 'x' * 30_000})

    _, person = ask(request, steps=[(Q, 'e'), (Q, 'n')])

    assert b'Nothing was changed.' in person.sent


def test_arguments_nested_too_deeply_cannot_be_edited() -> None:
    deep: list = []
    for _ in range(3000):
        deep = [deep]

    request = ApprovalRequest(tool_name='delete', args={'path': deep})

    _, person = ask(request, steps=[(Q, 'e'), (Q, 'n')], EDITOR=editor('pass'))

    assert b'cannot be edited' in person.sent


@pytest.mark.parametrize('value', [b'x', float('nan'), {1: 2}])
def test_arguments_that_are_not_json_cannot_be_edited(value: object) -> None:
    request = ApprovalRequest(tool_name='delete', args={'path': value}, description='d')

    _, person = ask(request, steps=[(Q, 'e'), (Q, 'n')], EDITOR=editor('pass'))

    assert b'These arguments cannot be edited.' in person.sent


@pytest.mark.parametrize('name', ['VISUAL', 'EDITOR'])
def test_editor_with_an_unclosed_quote_is_ignored(name: str) -> None:
    assert decide((Q, 'e'), ('path: ', '\x1b'), (Q, 'n'), **{name: "vi '"}).approved is False


def test_an_editor_that_stops_is_continued() -> None:
    stop = editor(
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); file.write_text(text.replace('notes', 'old'))"
    )

    assert decide((Q, 'e'), (Q, 'y'), EDITOR=stop).override_args == {'path': 'old.txt', 'force': False}


def test_changed_arguments_are_shown_with_the_changed_request() -> None:
    _, person = ask(REQUEST, steps=[(Q, 'e'), (Q, 'n')], EDITOR=RENAMES)

    assert '│ you have changed:\n│ - path: "notes.txt"\n│ + path: "old.txt"\n' in person.text


def test_a_terminal_that_another_program_changed_is_asked_on_again() -> None:
    def change(person: Person) -> None:
        termios.tcsetattr(person.slave, termios.TCSANOW, person.before)

    decisions, person = ask(REQUEST, steps=[(Q, change), (Q, 'n')])

    assert decisions[0].approved is False
    assert person.text.count('╭─ delete') == 2


def test_a_hidden_argument_is_not_shown_and_stays() -> None:
    request = ApprovalRequest(tool_name='delete', args={'path': 'a', 'token': 'hunter2'}, payload={'path': 'a'})

    decisions, person = ask(request, steps=[(Q, 'e'), ('path: "a"', '\x15"b"\r'), ('path: "b"', '\r'), (Q, 'y')])

    assert decisions[0].override_args == {'path': 'b', 'token': 'hunter2'}
    assert b'hunter2' not in person.sent


def test_a_hidden_argument_cannot_be_set_in_the_editor() -> None:
    request = ApprovalRequest(tool_name='delete', args={'path': 'a', 'token': 'hunter2'}, payload={'path': 'a'})
    action = "file.write_text('path: b' + chr(10) + 'token: other')"

    decisions, person = ask(request, steps=[(Q, 'e'), ('Press e', '\x1b'), (Q, 'y')], EDITOR=editor(action))

    assert b'The arguments are invalid: an argument that is not shown cannot be changed.' in person.sent
    assert decisions[0].override_args is None


def test_a_resized_terminal_is_asked_again() -> None:
    decisions, person = ask(REQUEST, steps=[(Q, lambda person: person.resize(50, 30)), (Q, 'y')])

    assert decisions[0].approved is True
    assert person.text.count('╭─ delete') == 1 and '│ s: the same call' in person.text


def test_a_pager_follows_the_size_of_the_terminal() -> None:
    def enlarge(person: Person) -> None:
        person.resize(80, 30)

    decisions, _ = ask(LONG, steps=[(Q, 'v'), ('lines 1-23', enlarge), ('lines 1-29', 'q'), (Q, 'n')], lines=24)

    assert decisions[0].approved is False


NARROW = 'the run. '


@pytest.mark.parametrize('key', ['y', 's', 'e', 'v', '?'])
def test_no_key_approves_in_a_window_that_is_too_narrow(key: str) -> None:
    decisions, person = ask(REQUEST, steps=[(NARROW, key), (NARROW, 'n')], columns=23)

    assert decisions[0].approved is False
    assert 'Too narrow to approve' in person.sent.decode()
    assert 'delete' not in person.sent.decode().partition('ada denied')[0]


def test_a_window_that_is_made_wider_asks() -> None:
    decisions, _ = ask(REQUEST, steps=[(NARROW, lambda person: person.resize(80, 40)), (Q, 'y')], columns=23)

    assert decisions[0].approved is True


def test_a_key_that_was_pressed_right_after_the_window_was_made_narrower_approves_nothing() -> None:
    def shrink_and_press(person: Person) -> None:
        person.resize(30, 40)
        os.write(person.master, b'y')

    decisions, _ = ask(REQUEST, steps=[(Q, shrink_and_press), (Q, 'n')])

    assert decisions[0].approved is False


def test_a_group_is_not_approved_in_a_window_that_is_too_narrow() -> None:
    steps = [(NARROW, 'A'), (NARROW, 'o'), (NARROW, 'N')]

    decisions, _ = ask(REQUEST, REQUEST, steps=steps, columns=23)

    assert [each.approved for each in decisions] == [False, False]


def test_options_with_the_same_label_are_distinguished_in_the_choice() -> None:
    options = [
        RememberOption(kind=kind, label='notes/', payload={'path': path}) for kind, path in (('a', 'n'), ('b', '/'))
    ]
    request = REQUEST.model_copy(update={'remember_options': tuple(options)})

    decisions, person = ask(request, steps=[(Q, 'r'), ('Press 1 to 3', '3')])

    assert decisions[0].remember_option == 'b'
    assert "3  notes/ (b: path: '/')" in person.sent.decode()


@pytest.mark.parametrize('columns', [80, 50, 24])
def test_scope_of_an_option_is_shown_whole_before_it_is_chosen(columns: int) -> None:
    seen: list[str] = []
    option = RememberOption(kind='wide', label=f'{COVERS}   2  exactly this call', payload={'any': 1})
    request = REQUEST.model_copy(update={'remember_options': (option,)})

    steps = [(Q, 'r'), ('Press 1 to 2', looking(seen, '\x1b')), (Q, 'n')]
    _, person = ask(request, steps=steps, columns=columns)

    lines = seen[0].splitlines()
    options = lines[lines.index('  1  exactly this call') :]
    # What is continued is marked, so that it looks like no other choice.
    assert [line.startswith('    ↪') for line in options[2:-1]] == [True] * len(options[2:-1])
    told = ''.join(line.removeprefix('    ↪') for line in options[1:-1])
    assert told.replace(' ', '') == f'2{COVERS}2exactlythiscall'.replace(' ', '')
    assert '╭─ delete' in person.text


def test_choices_that_fill_the_screen_say_so_and_the_request_is_drawn_again_after_them() -> None:
    seen: list[str] = []
    options = [RememberOption(kind=str(n), label=f'{n} {"x" * 200}', payload={'any': n}) for n in range(8)]
    request = REQUEST.model_copy(update={'remember_options': tuple(options)})

    _, person = ask(request, steps=[(Q, 'r'), ('Press 1 to 9', looking(seen, '\x1b')), (Q, 'n')], lines=24)

    assert '26 rows do not fit; scroll up to see all.' in seen[0]
    assert '╭─ delete' not in seen[0]
    assert '╭─ delete' in person.text


def test_all_of_an_extra_access_is_behind_a_key() -> None:
    seen: list[str] = []
    metadata = {'extra_access': ['network (every host, and more)'], 'brief_access': ['network (every host)']}
    presentation = ApprovalPresentation(type='command', content='curl x', metadata=metadata)
    request = REQUEST.model_copy(update={'presentation': presentation})

    ask(request, steps=[(Q, '?'), (Q, looking(seen, 'n'))])

    assert [line for line in seen[0].splitlines() if 'network' in line] == [
        '│ extra access: network (every host)',
        '│ extra access: network (every host, and more)',
    ]


def test_more_is_opened_by_a_key_and_says_what_each_key_covers() -> None:
    seen: list[str] = []
    request = BRIEF.model_copy(update={'metadata': {'can_remember_always': True, 'toolset_id': 'files'}})

    ask(request, steps=[(Q, '?'), (Q, looking(seen, 'n'))], memory=ApprovalMemory())

    assert seen[0].strip() == snapshot("""\
╭─ delete
│ ┊ path: "notes.txt"
│ ┊ force: false
│ y  approve
│ n  deny
│ s  approve for this session: every file in notes/
│ v  view everything, page by page
│ d  deny with a note
│ x  deny for this session: exactly this call
│ e  edit arguments
│ r  approve, and choose what to remember for this session
│ a  approve, and choose what to always remember
│ l  list remembered approvals, and revoke them
│ q  deny, and stop the run
│ toolset: files
│ mark: 292bc7b338a5c8d9 (a different request has a different mark)
╰─ y approve   n deny   s notes this session   ? more\
""")


def test_keys_of_answers_that_the_tool_does_not_allow_do_nothing():
    seen: list[str] = []
    press = [(Q, looking(seen, key)) for key in 'yesra']

    decision = decide((Q, looking(seen, 'y')), *press[1:], (Q, '?'), (Q, looking(seen, 'n')), request=ASKED)

    assert decision.approved is False
    assert 'w write the result   n deny   ? more' in seen[0]
    assert not any(f'│ {key}  ' in seen[-1] for key in 'yesra')


def test_what_became_of_a_response_is_said_without_the_response():
    _, person = ask(ASKED, steps=[(Q, 'w'), (RESULT, '42'), ('Result: 42', '\r')])

    assert person.text.splitlines()[-1] == "✗ ada answered in place of ask_user: question='How many?'"
    assert (
        decide((Q, 'w'), (RESULT, '\x1b[200~a\x07b\ncc\x1b[201~'), (RESULT, '\r'), request=ASKED).response is not None
    )


def test_an_edit_that_the_tool_could_not_take_is_shown_with_the_reason_and_edited_further():
    seen: list[str] = []
    hostile = 'path: not a text\n╰─ y approve\x1b[2J'
    rejected = RejectedEdit(args={'path': 7, 'force': True}, problem=hostile)
    asked = REQUEST.model_copy(update={'rejected_edit': rejected})
    steps = [
        (Q, looking(seen, 'e')),
        ('path: 7', '\x7f"b"'),
        ('path: "b"', '\r'),
        ('force: true', '\r'),
        (Q, looking(seen, 'y')),
    ]

    decision = decide(*steps, request=asked)

    assert decision.override_args == {'path': 'b', 'force': True}
    rows = seen[0].splitlines()
    assert '│ your edit: was not accepted, so the call is asked about again: path: not a' in rows
    assert '│  ↪ text<U+000A>╰─ y approve<U+001B>[2J' in rows
    assert 'your edit' not in seen[1].split('You have changed the call')[-1]


def test_an_edit_that_the_tool_could_not_take_and_that_is_not_changed_approves_nothing():
    asked = REQUEST.model_copy(
        update={'rejected_edit': RejectedEdit(args={'path': 7, 'force': True}, problem='not a text')}
    )

    decision = decide((Q, 'e'), ('path: 7', '\r'), ('force: true', '\r'), (Q, 'n'), request=asked)

    assert decision.approved is False


def test_where_only_edits_are_allowed_a_changed_call_can_be_approved():
    only = REQUEST.model_copy(update={'answers': ('edit',)})
    steps = [(Q, 'e'), ('path: "notes.txt"', '\x7f2"'), ('path: "notes.txt2"', '\r'), ('force: false', '\r'), (Q, 'y')]

    assert decide(*steps, request=only).override_args == {'path': 'notes.txt2', 'force': False}

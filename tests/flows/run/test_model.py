"""`tool-approval run --model` with the real client library, against a server that speaks OpenAI's chat completions."""

import pytest

from .talk import Talk

WRITE = ['write_file', {'path': 'notes.txt', 'content': 'one\ntwo\n'}]
SORT = ['run_shell', {'command': 'sort -r notes.txt > sorted.txt && echo sorted'}]
DELETE = ['delete', {'path': 'notes.txt'}]


def test_one_conversation_with_two_approvals_a_denial_and_every_failure(talk: Talk) -> None:
    screen = talk.start(
        steps=[
            {'text': 'I write, then I sort.', 'calls': [WRITE]},
            {'calls': [SORT]},
            {'text': 'Now they are sorted.'},
            {'text': 'I tidy up.', 'calls': [DELETE]},
            {'text': 'I leave it, then.'},
            {'drop': 'It was the second of '},
            {'text': 'No such key.', 'status': 401},
            {'text': 'Out of order.', 'status': 500, 'times': 3},
            {'text': 'Here I am again.'},
        ]
    )

    talk.say('Note one and two, and sort them.')
    talk.answer('╭─ write_file', 'y')
    talk.answer('╭─ run_shell', 'y')
    screen.wait_for('● Now they are sorted.')
    assert (talk.cwd / 'sorted.txt').read_text() == 'two\none\n'

    talk.say('Tidy up.')
    talk.answer('╭─ delete', 'd')
    talk.answer('Note: ', 'I still need them')
    talk.answer('Note: I still need them', '\r')
    screen.wait_for('● I leave it, then.')
    assert (talk.cwd / 'notes.txt').exists()

    talk.say('When was that?')
    screen.wait_for('● It was the second of\nThe run failed: ')
    talk.say('Again?')
    screen.wait_for('The run failed: status_code: 401')
    talk.say('And now?')
    screen.wait_for('The run failed: status_code: 500')
    talk.say('Are you there?')
    screen.wait_for('● Here I am again.')
    status = talk.leave()

    assert status == 0
    assert screen.scrolled.count('The run failed: ') == 3
    assert 'Traceback' not in screen.scrolled
    server = talk.server
    assert server.keys == {'Bearer a-key-for-the-test'}
    assert all(request['stream'] for request in server.requests)
    assert server.told(2, 'tool') == ['Wrote project:notes.txt (8 bytes).', 'sorted']
    assert server.told(4, 'tool')[-1] == 'The approver denied this call, so it was not run: I still need them'
    asked = ['Note one and two, and sort them.', 'Tidy up.', 'When was that?', 'Again?', 'And now?', 'Are you there?']
    assert server.told(-1, 'user') == asked
    assert [(entry['tool_name'], entry['approved'], entry.get('note')) for entry in talk.entries()] == [
        ('write_file', True, None),
        ('run_shell', True, None),
        ('delete', False, 'I still need them'),
    ]


NESTED = """
from pydantic_ai import Agent, RunContext

helper = Agent(name='helper')
agent = Agent(name='boss')


@agent.tool
async def ask_helper(ctx: RunContext, question: str) -> str:
    return (await helper.run(question, model=ctx.model)).output


@helper.tool_plain(requires_approval=True)
def pay(amount: int) -> str:
    return f'paid {amount}'
"""


def test_an_agent_inside_a_tool_does_not_stream_and_asks_the_same_person(talk: Talk) -> None:
    (talk.cwd / 'office.py').write_text(NESTED)
    screen = talk.start(
        '--agent',
        'office:agent',
        'Pay.',
        steps=[{'calls': [['ask_helper', {'question': 'How much?'}]]}, {'text': 'Five.'}, {'text': 'It says five.'}],
    )

    status = screen.end()

    assert status == 0
    assert [request.get('stream', False) for request in talk.server.requests] == [True, False, True]
    assert '  → ask_helper {"question":"How much?"}\n  │ Five.\n● It says five.' in screen.scrolled


@pytest.mark.parametrize(('status', 'said'), [(401, 'Wrong key \x1b]0;owned\x07 here.'), (400, 'x' * 5000)])
def test_error_of_a_server_is_one_line_without_control_characters(status: int, said: str, talk: Talk) -> None:
    screen = talk.start('Go.', steps=[{'text': said, 'status': status}])

    ended = screen.end()

    assert ended == 1
    assert 'The run failed: status_code: ' in screen.text
    assert 'owned' not in screen.sent or '\x1b]0;owned' not in screen.sent
    assert len(screen.text) < 2000

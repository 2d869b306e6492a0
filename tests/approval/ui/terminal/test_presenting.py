"""What is shown of a call that a person has changed."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot
from tool_approval.core.errors import StoreError
from tool_approval.ui.terminal import changing

from tool_approval import ApprovalPresentation, ApprovalRequest

from .person import Person, Step, ask, looking, make_ui

COMMAND = ApprovalRequest(
    tool_name='run_shell',
    args={'command': 'kill 1'},
    presentation=ApprovalPresentation(type='command', content='kill 1', metadata={'cwd': '/srv/app'}),
    reason='no rule matches it',
    bound_to={'cwd': '/srv/app'},
)
Q = '╰─ '
EDIT: list[Step] = [(Q, 'e'), ('command: "kill 1"', '\x15"ls"'), ('command: "ls"', '\r')]


def shown(request: ApprovalRequest, presenter: Any = None) -> str:
    """The box that is asked about after the command was changed to `ls`."""
    seen: list[str] = []
    presenters = {} if presenter is None else {'run_shell': presenter}
    ask(request, steps=[*EDIT, (Q, looking(seen, 'n'))], presenters=presenters, columns=60)
    return seen[0].rpartition('╭')[2].partition('╰')[0]


def as_command(request: ApprovalRequest) -> ApprovalPresentation:
    return ApprovalPresentation(type='command', content=request.args['command'], metadata={'cwd': '/srv/app'})


async def awaited(request: ApprovalRequest) -> ApprovalPresentation:
    await asyncio.sleep(0)
    return as_command(request)


@pytest.mark.parametrize('presenter', [as_command, awaited])
def test_a_changed_call_is_shown_as_its_presenter_shows_it(presenter: Any) -> None:
    assert shown(COMMAND, presenter) == snapshot("""\
─ run_shell in /srv/app
│ why: before your change: no rule matches it
│ $ ls
│ you have changed:
│ - command: "kill 1"
│ + command: "ls"
You have changed the call. Nothing is approved yet.
""")


def test_without_a_presenter_the_arguments_are_shown_with_the_directory() -> None:
    assert shown(COMMAND) == snapshot("""\
─ run_shell in /srv/app
│ why: before your change: no rule matches it
│ ┊ The tool cannot show the changed call.
│ arguments:
│ ┊ command: "ls"
│ you have changed:
│ - command: "kill 1"
│ + command: "ls"
You have changed the call. Nothing is approved yet.
""")


def test_directory_of_the_presentation_is_shown_if_none_is_bound() -> None:
    assert shown(COMMAND.model_copy(update={'bound_to': {}})).startswith('─ run_shell in /srv/app\n')


def test_call_without_directory_and_reason_shows_neither() -> None:
    bare = ApprovalRequest(tool_name='run_shell', args={'command': 'kill 1'})

    box = shown(bare)

    assert box.startswith('─ run_shell\n')
    assert '│ why' not in box


def test_other_bindings_of_the_approval_are_shown() -> None:
    bound = {'files': {'project:a': '1f', 'project:b': '2f'}, 'host': 'db1'}

    box = shown(COMMAND.model_copy(update={'bound_to': bound}))

    assert '│ ┊ The approval stays bound to the same files: project:a,' in box
    assert "│ ┊ The approval stays bound to the same host: 'db1'\n" in box


def raises(error: BaseException) -> Any:
    def present(request: ApprovalRequest) -> ApprovalPresentation:
        raise error

    return present


@pytest.mark.parametrize(
    ('presenter', 'told'),
    [
        (raises(PermissionError('it is blocked.')), 'The changed call cannot be shown: it is blocked.'),
        (raises(StoreError('', 'no store')), 'The changed call cannot be shown: no store'),
        (raises(ValueError('hunter2')), 'The changed call cannot be shown (ValueError).'),
        (lambda request: None, 'The tool cannot show the changed call.'),
        (lambda request: 'text', 'The tool cannot show the changed call.'),
    ],
)
def test_a_presenter_that_fails_is_replaced_by_a_sentence(presenter: Any, told: str) -> None:
    box = shown(COMMAND, presenter)

    assert f'│ ┊ {told}\n' in box
    assert '│ ┊ command: "ls"\n' in box
    assert 'hunter2' not in box


def test_a_presenter_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, 'PATIENCE_S', 0.0)
    cancelled: list[bool] = []

    async def never(request: ApprovalRequest) -> ApprovalPresentation:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        raise AssertionError

    assert '│ ┊ The changed call cannot be shown (TimeoutError).\n' in shown(COMMAND, never)
    assert cancelled == [True]


def test_presenter_cannot_change_the_approved_arguments() -> None:
    def bends(request: ApprovalRequest) -> ApprovalPresentation:
        shown = as_command(request)
        request.args['targets'].append('b')  # type: ignore[index]
        return shown

    request = ApprovalRequest(tool_name='run_shell', args={'command': 'kill 1', 'targets': ['a']})

    decisions, _ = ask(
        request,
        steps=[*EDIT, ('targets: ', '\r'), (Q, 'y')],
        presenters={'run_shell': bends},
    )

    assert decisions[0].override_args == {'command': 'ls', 'targets': ['a']}


def test_a_question_that_is_withdrawn_while_the_presenter_works_ends_it() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def never(request: ApprovalRequest) -> ApprovalPresentation:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async def main(person: Person) -> None:
        ui = make_ui(person, presenters={'run_shell': never})
        asking = asyncio.create_task(ui.choose(COMMAND, mode='interactive'))
        await asyncio.wait_for(started.wait(), 8)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(ended.wait(), 8)

    with Person(EDIT, columns=60) as person:
        asyncio.run(main(person))

        person.assert_done()
    assert 'is no longer asked. Denied: run_shell' in person.text

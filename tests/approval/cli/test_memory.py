"""Looking at remembered approvals, and forgetting them."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tool_approval.core.bounds import Left
from tool_approval.core.protocols import RememberedApproval
from tool_approval.storage import FileApprovalStore


@pytest.fixture
def remembered(work):
    """Two approvals in the user's store, of a project that no later command names."""
    store = FileApprovalStore(work)
    for digit, by in (('a', ('ada',)), ('b', ())):
        store.put(
            RememberedApproval(
                id=digit * 64,
                tool_name=f'send_{digit}',
                kind='exact',
                label='Mail \x1b[31m',
                approved_by=by,
                approved_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
                project=None if not by else '/projects/mail\x1b[31m',
            )
        )
    return store


def test_memory_commands_create_no_store(tool_approval, work):
    for words in (['list'], ['clear']):
        assert tool_approval('memory', *words).out == 'nothing is remembered\n'

    assert tool_approval('memory', 'list', '--json').out == ''
    assert not (work.parent / 'state').exists()


def test_approvals_are_listed(tool_approval, remembered):
    assert tool_approval('memory', 'list').out == (
        'aaaaaaaa  2026-01-02 03:04 by ada  send_a (exact): Mail <U+001B>[31m  in /projects/mail<U+001B>[31m\n'
        'bbbbbbbb  2026-01-02 03:04  send_b (exact): Mail <U+001B>[31m\n'
    )


def test_what_is_left_of_a_bounded_approval_is_listed(tool_approval, remembered):
    [first, _] = remembered.list_all()
    left = Left(uses=3, total={'amount': Decimal('120.50')}, until=datetime(2999, 1, 2, 3, 4, tzinfo=UTC))
    remembered.put(first.model_copy(update={'left': left}))

    assert tool_approval('memory', 'list').out.splitlines()[0] == (
        'aaaaaaaa  2026-01-02 03:04 by ada  send_a (exact): Mail <U+001B>[31m  '
        '(3 calls left, 120.5 of `amount` left, until 2999-01-02 03:04 UTC)  in /projects/mail<U+001B>[31m'
    )


def test_an_approval_that_has_ended_is_listed_as_such(tool_approval, remembered):
    [_, second] = remembered.list_all()
    remembered.put(second.model_copy(update={'left': Left(until=datetime(2026, 1, 2, 4, tzinfo=UTC))}))

    assert tool_approval('memory', 'list').out.endswith('send_b (exact): Mail <U+001B>[31m  (ended)\n')


def test_approvals_are_listed_in_json(tool_approval, remembered):
    lines = tool_approval('memory', 'list', '--json').out.splitlines()

    assert [json.loads(line)['tool_name'] for line in lines] == ['send_a', 'send_b']


def test_approval_is_forgotten_by_the_start_of_its_id(tool_approval, remembered):
    finished = tool_approval('memory', 'forget', 'aaaaaaaa')

    assert finished.status == 0
    assert [each.tool_name for each in remembered.list_all()] == ['send_b']


@pytest.mark.parametrize('beginning', ['', 'a', 'cccccccc'])
def test_ambiguous_or_unknown_id_forgets_nothing(tool_approval, remembered, beginning):
    finished = tool_approval('memory', 'forget', beginning)

    assert finished.status == 2
    assert len(remembered.list_all()) == 2


def test_forget_without_a_store_fails(tool_approval):
    assert tool_approval('memory', 'forget', 'aaaaaaaa').status == 2


@pytest.mark.parametrize(
    ('words', 'typed', 'is_terminal', 'status', 'left'),
    [
        (['--yes'], '', False, 0, 0),
        ([], 'y', True, 0, 0),
        ([], 'n', True, 2, 2),
        ([], '', True, 2, 2),
        ([], 'y\n', False, 2, 2),
    ],
)
def test_all_approvals_are_forgotten_only_after_a_yes(
    tool_approval, remembered, words, typed, is_terminal, status, left
):
    finished = tool_approval('memory', 'clear', *words, typed=typed, is_terminal=is_terminal)

    assert finished.status == status
    assert len(remembered.list_all()) == left


def test_other_store_can_be_named(tool_approval, work):
    path = work.parent / 'elsewhere/store.json'
    FileApprovalStore(work, path)

    assert tool_approval('memory', 'list', '--store', str(path)).out == 'nothing is remembered\n'


def test_untrusted_store_is_reported_and_kept(tool_approval, remembered, work):
    path = work.parent / 'state/tool-approval/approvals.json'
    path.chmod(0o644)

    finished = tool_approval('memory', 'clear', '--yes')

    assert finished.status == 2
    assert 'chmod 600' in finished.err


def test_missing_home_folder_is_an_error_that_asks_for_a_store(tool_approval, monkeypatch):
    def homeless():
        raise RuntimeError

    monkeypatch.setattr('tool_approval.storage.default_path', homeless)

    assert 'set HOME, or give the path of the file' in tool_approval('memory', 'list').err

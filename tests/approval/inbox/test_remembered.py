"""Remembered approvals in the database of an inbox."""

from contextlib import contextmanager

import pytest
from tool_approval.durable import DurableStore
from tool_approval.inbox import InboxApprovalStore, InboxUnavailable
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.testing import check_store

from tests.approval.bounds_race import ROUNDS, race
from tests.approval.parts import NOON, request_for
from tool_approval import ApprovalDecision, ApprovalMemory, RememberedApproval, StoreError

ALWAYS = ApprovalDecision(approved=True, remember='always', decided_by=('ada',), decided_at=NOON)
APPROVAL = RememberedApproval(id='a' * 64, tool_name='delete', kind='exact', label='delete(a)', approved_at=NOON)


@pytest.fixture
def make_database(make_store):
    """Opens the database of this test, as each of several processes would."""
    opened = []

    def make():
        opened.append(make_store())
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_the_suite_of_stores_passes(make_database):
    check_store(lambda: InboxApprovalStore(make_database(), 'p'))


@pytest.mark.parametrize('rounds', ROUNDS)
def test_no_bound_is_exceeded_by_several_processes(make_database, rounds):
    tally = race(lambda: ApprovalMemory(InboxApprovalStore(make_database(), 'p')), rounds=rounds)

    assert tally.ran > rounds
    assert tally.exhausted > rounds / 3


def test_an_approval_is_remembered_for_its_project_alone(make_database):
    one, other = (ApprovalMemory(InboxApprovalStore(make_database(), project)) for project in ('p', 'q'))

    one.store(request_for('a'), ALWAYS)

    assert other.lookup(request_for('a')) is None
    [listed] = other.list_approvals()
    assert listed.project == 'p'


def test_the_key_differs_from_that_of_the_executions(make_database):
    store = make_database()

    assert InboxApprovalStore(store, 'p').key != DurableStore(store).secret()


def test_an_approval_that_was_changed_by_hand_is_not_used(make_database):
    inbox_store = make_database()
    store = InboxApprovalStore(inbox_store, 'p')
    store.put(APPROVAL)
    with inbox_store.transaction() as execute:
        execute('UPDATE approvals SET content = ?', ('{"id": "secret"}',))

    for use in (lambda: store.get(APPROVAL.id), store.list_all, lambda: store.change(APPROVAL.id, lambda found: found)):
        with pytest.raises(StoreError, match=r'corrupt \(\d errors\)') as caught:
            use()
        assert 'secret' not in str(caught.value)


def test_a_secret_that_was_changed_is_refused(make_database):
    inbox_store = make_database()
    InboxApprovalStore(inbox_store, 'p')
    with inbox_store.transaction() as execute:
        execute('UPDATE secret SET value = ?', ('ab',))

    with pytest.raises(StoreError, match='the secret key was changed'):
        InboxApprovalStore(make_database(), 'p')


def test_a_database_that_is_away_approves_nothing(tmp_path):
    inbox_store = SQLiteStore(tmp_path / 'state' / 'inbox.sqlite')
    memory = ApprovalMemory(InboxApprovalStore(inbox_store, 'p'))
    memory.store(request_for('a'), ALWAYS)
    inbox_store.close()

    with pytest.raises(StoreError, match='the store is closed') as caught:
        memory.lookup(request_for('a'))
    assert isinstance(caught.value.__cause__, InboxUnavailable)


def test_a_change_that_another_process_was_faster_with_is_made_again(make_database):
    store, other = (InboxApprovalStore(make_database(), 'p') for _ in range(2))
    store.put(APPROVAL)
    seen = []

    def change(found):
        seen.append(found.label)
        return found.model_copy(update={'label': f'{found.label}!'})

    class Faster:
        """Lets the other store change the approval between reading and writing."""

        def __init__(self, execute):
            self.execute = execute

        def __call__(self, statement, values=()):
            if statement.startswith('UPDATE approvals') and len(seen) == 1:
                values = (*values[:2], 'something else')
            return self.execute(statement, values)

    execute_in = store._store.transaction

    @contextmanager
    def transaction():
        with execute_in() as execute:
            yield Faster(execute)

    store._store.transaction = transaction
    changed = store.change(APPROVAL.id, change)

    assert seen == ['delete(a)', 'delete(a)']
    assert changed == other.get(APPROVAL.id)


def test_what_is_not_a_database_is_refused():
    with pytest.raises(TypeError, match='SQLiteStore'):
        InboxApprovalStore('inbox.sqlite', 'p')

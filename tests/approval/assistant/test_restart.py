"""The story in which the process of the agents is killed: what is paid, and that nothing is left behind."""

import asyncio
import io
import sys
import tempfile
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from tool_approval.testing import ScriptedUI

pytest.importorskip('dbos', reason='the development environment has DBOS')

from tool_approval.assistant.stories import restart, restart_worker
from tool_approval.assistant.stories.restart import play_restart

from tests.approval.inbox.parts import NO, YES, answer, soon

from .shown import shown_screen


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


def played(ui):
    screen = shown_screen()
    end = asyncio.run(play_restart(make_ui=lambda memory, presenters: ui, screen=screen))
    return end, screen.shown


@pytest.mark.thorough
@pytest.mark.parametrize(
    ('said', 'told', 'paid'), [('y', 'paid', 1), ('n', 'not paid, because I was not allowed to pay it', 0)]
)
def test_answer_counts_after_the_asking_process_was_killed(said, told, paid):
    ui = ScriptedUI([said])

    end, shown = played(ui)

    assert end == 'done'
    assert [request.args for request in ui.requests] == [{'number': 17, 'euros': 250}]
    assert [(level.agent_name, level.tool_name) for level in ui.requests[0].lineage] == [('bookkeeper', 'ask_cashier')]
    assert f'● The cashier says: Invoice 17 is {told}.\n\nIn fact: payments of invoice 17: {paid}.\n' in shown


class Leaves:
    """A person who answers nothing."""

    async def choose(self, request, *, mode):
        raise KeyboardInterrupt


def test_stopped_demo_states_the_payments_made():
    end, shown = played(Leaves())

    assert end == 'stopped'
    assert shown.endswith('Stopped.\n\nIn fact: payments of invoice 17: 0.\n')


def test_agent_that_does_not_start_is_reported(monkeypatch):
    monkeypatch.setattr(restart, '_WITHIN_S', 0.01)
    monkeypatch.setattr(restart, '_worker', lambda folder: nullcontext(SimpleNamespace()))

    with pytest.raises(RuntimeError, match='did not respond in time'):
        played(ScriptedUI(['y']))


@pytest.mark.parametrize(('decision', 'paid'), [(YES, '17: 250\n'), (NO, None)])
def test_bookkeeper_pays_approved_invoices(tmp_path, monkeypatch, decision, paid):
    folder = tmp_path / 'books'
    folder.mkdir()
    bookkeeper = restart_worker.make_bookkeeper(folder)
    monkeypatch.setattr(sys, 'stdin', io.StringIO())

    async def main():
        run = await bookkeeper.start('Pay.')
        await restart_worker.work(folder)  # which ends with its standard input
        async with bookkeeper.worker(polling=0.05):
            [entry] = await soon(bookkeeper.ui.inbox)
            await answer(bookkeeper.ui.inbox, entry, decision)
            return await run.result()

    told = asyncio.run(main())
    bookkeeper.ui.inbox.close()
    bookkeeper.store.close()

    payments = folder / 'payments.txt'
    assert (
        told
        == f'The cashier says: Invoice 17 is {"paid" if paid else "not paid, because I was not allowed to pay it"}.'
    )
    assert (payments.read_text() if payments.exists() else None) == paid
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()

"""People steer durable runs at the page, in Debian's Chromium."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tool_approval.durable import DurableStore
from tool_approval.inbox import ApproverRule

from tests.approval.durable.parts import asked, asked_again, unknown, waiting

from .conftest import Site
from .test_stories import PHONE, axe


@pytest.mark.parametrize('scripted', [True, False], ids=['script', 'no script'])
def test_a_run_is_found_read_and_cancelled(site: Site, visit: Callable[..., Page], scripted: bool) -> None:
    store = DurableStore(site.inbox.store)
    waiting(store, asked(), run_id='order-17/a?b')
    page = visit(java_script_enabled=scripted)

    page.get_by_role('link', name='Runs').click()
    page.get_by_role('link', name='order-17/a?b').click()
    expect(page.get_by_text(re.compile('The run has been waiting for 1 answer since'))).to_be_visible()
    page.get_by_text('Cancel this run').click()
    page.get_by_role('button', name='Cancel the run').click()

    expect(page.get_by_text(re.compile('The run ended at .*: cancelled'))).to_be_visible()
    expect(page.get_by_role('button', name='Cancel the run')).to_have_count(0)
    assert [row.state for row in store.requests_of('order-17/a?b')] == ['withdrawn']


def test_user_who_may_not_cancel_a_run_sees_the_reason_and_no_button(site: Site, visit: Callable[..., Page]) -> None:
    store = DurableStore(site.inbox.store)
    waiting(store, asked(approvers=(ApproverRule(users=frozenset({'bob'})),)))
    page = visit()

    page.goto(f'http://{site.host}/run?run=order-17')

    expect(page.get_by_text('ada may not cancel this run: only listed approvers may answer.')).to_be_visible()
    expect(page.get_by_role('button', name='Cancel the run')).to_have_count(0)


@pytest.mark.parametrize('scripted', [True, False], ids=['script', 'no script'])
def test_an_unknown_call_gets_its_result(site: Site, visit: Callable[..., Page], scripted: bool) -> None:
    store = DurableStore(site.inbox.store)
    waiting(store, asked_again(store))
    unknown(store)
    page = visit(java_script_enabled=scripted)

    page.goto(f'http://{site.host}/run?run=order-17')
    expect(page.get_by_text('The call may have run.')).to_be_visible()
    page.get_by_label('Result in JSON').fill('{"receipt":\n4711}')
    page.get_by_role('button', name='The call ran, with this result').click()

    expect(page.get_by_text(re.compile('pay, attempt 1: done'))).to_be_visible()
    expect(page.get_by_text('The run has its answers, and continues')).to_be_visible()
    assert store.executions_of('order-17')[0].result == '{"value":{"receipt":4711},"by":"ada"}'


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_runs_fit_a_phone_and_a_screen_reader_finds_its_way(
    site: Site, visit: Callable[..., Page], scheme: str
) -> None:
    store = DurableStore(site.inbox.store)
    waiting(store, asked(), asked('send_mail', 'c2'), run_id='order-17')
    unknown(store)
    waiting(store, run_id='x' * 200)
    page = visit(color_scheme=scheme, bypass_csp=True, **PHONE)

    for path in ('runs', 'run?run=order-17', f'run?run={"x" * 200}'):
        page.goto(f'http://{site.host}/{path}')
        for summary in page.locator('summary').all():
            summary.click()
        assert axe(page) == []
        assert page.evaluate('document.documentElement.scrollWidth') == 390

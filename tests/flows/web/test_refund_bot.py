"""Two leads approve a large refund at the page, in Debian's Chromium."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from tool_approval.inbox import Approver

from .conftest import Site
from .test_stories import PHONE, axe, card

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / 'examples' / 'refund_bot.py'))
LEADS = frozenset({'leads'})


def login(page: Page, site: Site, name: str, groups: frozenset[str]) -> None:
    page.goto(f'http://{site.host}/?token={site.login.ticket(Approver(id=name, groups=groups))}')


def test_two_leads_agree_and_each_sees_who_has_agreed(site: Site, visit: Callable[..., Page]) -> None:
    bot: Any = EXAMPLE['make_bot'](EXAMPLE['plan'](600), site.agents)
    running = site.run(bot.run('Pay.'))
    eve, ada, bob = (visit(**PHONE, bypass_csp=True) for _ in range(3))
    login(eve, site, 'eve', frozenset())
    login(ada, site, 'ada', LEADS)
    login(bob, site, 'bob', LEADS)

    expect(card(eve, 'refund')).to_contain_text('only listed approvers may answer; others may from')
    expect(card(eve, 'refund').get_by_role('button', name='Approve refund')).to_have_count(0)
    expect(card(ada, 'refund')).to_contain_text('0 of 2 people')
    expect(card(ada, 'refund')).to_contain_text('rex')
    card(ada, 'refund').get_by_role('button', name='Approve refund').click()
    expect(card(bob, 'refund').filter(has_text='1 of 2 people: ada')).to_be_visible()
    assert axe(bob) == []
    assert bob.evaluate('document.documentElement.scrollWidth') == 390
    card(bob, 'refund').filter(has_text='1 of 2 people').get_by_role('button', name='Approve refund').click()

    assert running.result(timeout=20).output == '600 were paid back for A-1.'
    expect(bob.get_by_text('Approved by bob (2 of 2)').first).to_be_visible()


def test_one_lead_denies_and_the_bot_reads_why(site: Site, visit: Callable[..., Page]) -> None:
    bot: Any = EXAMPLE['make_bot'](EXAMPLE['plan'](600), site.agents)
    running = site.run(bot.run('Pay.'))
    ada = visit()
    login(ada, site, 'ada', LEADS)

    card(ada, 'refund').get_by_label('Note to the model').fill('Ask the customer first.')
    card(ada, 'refund').get_by_role('button', name='Deny').click()

    assert 'Ask the customer first.' in running.result(timeout=20).output

"""An agent in one process, the page in another, and a browser that answers."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip('playwright', reason='Playwright is not installed; CI installs it')
pytest.importorskip('uvicorn', reason='the extra `web` is not installed; CI installs it')

from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which('chromium')
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason='Debian’s Chromium is not installed: make install-system')


@pytest.fixture
def page(own_home):
    root = ['--no-sandbox'] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=root)
        opened = browser.new_page()
        opened.set_default_timeout(30_000)
        yield opened
        browser.close()


@pytest.fixture
def link(tmp_path):
    """The address that `tool-approval serve` prints, as long as it runs."""
    command = [sys.executable, '-P', '-m', 'tool_approval.cli', 'serve', '--port', '0', '--approver', 'ada']
    served = subprocess.Popen([*command, '--store', tmp_path / 'inbox.sqlite'], stdout=subprocess.PIPE, text=True)
    yield served.stdout.readline().strip().removeprefix('ada: ')
    served.kill()
    served.communicate()


def answer(page, text, button):
    found = page.locator('article', has_text=text)
    found.get_by_role('button', name=button).first.click()
    expect(found.locator('.outcome')).to_be_visible(timeout=30_000)


def test_answer_in_the_browser_lets_the_run_go_on(start, page, link, tmp_path):
    page.goto(link)
    with start('web_inbox_agent', '--store', str(tmp_path / 'inbox.sqlite')) as agent:
        answer(page, 'litres: 2', 'Approve water')
        page.locator('article', has_text='litres: 5').get_by_label('Note').fill('Not the cactus.')
        answer(page, 'litres: 5', 'Deny water')
        answer(page, 'throw_away', 'Deny throw_away')
        output, errors = agent.communicate()

    said = output.splitlines()
    assert said[:2] == ['The agent waits for your answers.', '- The fern got 2 litres.']
    assert 'Not the cactus.' in said[2]
    assert 'is gone' not in output
    assert (agent.returncode, errors) == (0, '')


def test_requests_of_an_ended_agent_are_withdrawn_on_an_open_page(start, page, link, tmp_path):
    page.goto(link)

    with start('web_inbox_agent', '--store', str(tmp_path / 'inbox.sqlite'), '--timeout', '1') as agent:
        output, _ = agent.communicate()

    expect(page.locator('.outcome.expired')).to_have_count(3, timeout=30_000)
    assert 'litres.' not in output

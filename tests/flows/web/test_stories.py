"""People answer requests at the page, in Debian's Chromium, against a real server and runs that wait."""

import contextlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tool_approval.inbox import ApproverRule, Escalation, InboxUI

from tests.flows.web import requests
from tool_approval import ApprovalController, ApprovalPresentation

AXE = Path(pytest.importorskip('axe_playwright_python').__file__).with_name('axe.min.js')
TALL = {'viewport': {'width': 1000, 'height': 1000}}
PHONE = {'viewport': {'width': 390, 'height': 844}, 'is_mobile': True, 'has_touch': True}


def card(page: Page, name: str):
    return page.locator('article', has=page.get_by_role('heading', name=name, exact=True))


def settled(page: Page, name: str, outcome: str):
    expect(card(page, name).locator('.outcome')).to_contain_text(outcome)


def buttons_are_ready(page: Page, name: str):
    expect(card(page, name).get_by_role('button', name='Approve', exact=False).first).to_be_enabled()


def until_shown(page: Page, name: str):
    for _ in range(50):  # without script the page is as it was when it was loaded
        if page.get_by_role('heading', name=name, exact=True).count():
            break
        page.reload()
    buttons_are_ready(page, name)


def axe(page: Page):
    page.evaluate(AXE.read_text())
    found = page.evaluate('axe.run()')
    return [(each['id'], [node['html'] for node in each['nodes']]) for each in found['violations']]


def test_a_request_arrives_without_reloading_and_is_approved(site, visit):
    page = visit()
    expect(page.get_by_text('No open requests.')).to_be_visible()
    page.evaluate('window.isSame = true')

    asked = site.ask(requests.request())
    card(page, 'delete_file').get_by_role('button', name='Approve delete_file').click()

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.decided_by) == (True, ('ada',))
    settled(page, 'delete_file', 'Approved by ada')
    assert page.evaluate('window.isSame')
    assert page.url == f'http://{site.host}/'
    assert page.title() == 'Open requests · Approvals'


def test_a_denial_carries_its_note_to_the_run(site, visit):
    page = visit()
    asked = site.ask(requests.edit())

    card(page, 'edit_file').get_by_label('Note to the model').fill('The fern is dead.\nLeave it.')
    card(page, 'edit_file').get_by_role('button', name='Deny').click()

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.note) == (False, 'The fern is dead.\nLeave it.')
    settled(page, 'edit_file', 'Denied by ada')


def test_edited_arguments_are_shown_again_before_they_are_approved(site, visit):
    page = visit()
    asked = site.ask(requests.request())

    card(page, 'delete_file').get_by_role('link', name='Edit').click()
    page.get_by_label('Arguments of delete_file').fill('{"path": ')
    page.get_by_role('button', name='Show the changed call').click()
    expect(page.get_by_role('alert')).to_contain_text('The arguments are invalid')
    page.get_by_label('Arguments of delete_file').fill('{"path": "notes/new.txt"}')
    page.get_by_role('button', name='Show the changed call').click()
    expect(page.get_by_text('Nothing is approved yet.')).to_be_visible()
    assert not asked.done()
    page.get_by_role('button', name='Approve the changed call').click()

    [decision] = site.decisions(asked)
    assert decision.override_args == {'path': 'notes/new.txt'}
    expect(page.get_by_role('heading', name='Open requests')).to_be_visible()


def test_flat_arguments_are_edited_in_a_form(site, visit):
    page = visit()
    schema = {
        'properties': {
            'path': {'type': 'string'},
            'mode': {'enum': ['soft', 'hard']},
            'days': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]},
        }
    }
    args = {'path': 'notes/old.txt', 'mode': 'soft', 'days': None}
    asked = site.ask(requests.request(args=args, args_schema=schema))

    card(page, 'delete_file').get_by_role('link', name='Edit').click()
    page.get_by_label('days', exact=True).fill('many')
    page.get_by_role('button', name='Show the changed call').click()
    expect(page.get_by_role('alert')).to_contain_text('`days` is not a whole number')
    page.get_by_label('days', exact=True).fill('30')
    page.get_by_label('mode', exact=True).select_option('hard')
    assert axe(page) == []
    page.get_by_role('button', name='Show the changed call').click()
    page.get_by_role('button', name='Approve the changed call').click()

    [decision] = site.decisions(asked)
    assert decision.override_args == {'path': 'notes/old.txt', 'mode': 'hard', 'days': 30}


def test_an_approver_answers_in_the_tools_place(site, visit):
    page = visit()
    asked = site.ask(requests.request('ask_user', answers=('respond',)))

    asking = card(page, 'ask_user')
    expect(asking.get_by_role('button', name='Approve')).to_have_count(0)
    asking.get_by_label('Result').fill('forty-two\n<b>')
    assert axe(page) == []
    asking.get_by_role('button', name='Answer in its place').click()

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.response) == (False, 'forty-two\n<b>')
    settled(page, 'ask_user', 'Answered in place of the tool by ada')


def test_an_approval_for_the_session_answers_the_next_one(site, visit):
    page = visit()
    asked = site.ask(requests.command())

    remembering = card(page, 'run_shell').locator('details').filter(has_text='Approve and remember')
    remembering.get_by_text('Approve and remember').click()
    remembering.get_by_label('every "git push" in /home/ada/garden').check()
    remembering.get_by_role('button', name='Approve for this session').click()
    [first] = site.decisions(asked)
    [second] = site.decisions(site.ask(requests.command()))

    assert (first.remember, first.remember_option) == ('session', 'program')
    assert second.approved
    expect(page.locator('article')).to_have_count(1)
    settled(page, 'run_shell', 'Approved for this session by ada')


def test_a_denial_for_the_session_answers_the_next_one(site, visit):
    page = visit()
    asked = site.ask(requests.command())

    denying = card(page, 'run_shell').locator('details').filter(has_text='Deny and remember')
    denying.get_by_text('Deny and remember').click()
    assert axe(page) == []
    denying.get_by_role('button', name='Deny for this session').click()
    [first] = site.decisions(asked)
    [second] = site.decisions(site.ask(requests.command()))

    assert (first.approved, first.remember, first.remember_option) == (False, 'session', 'exact')
    assert not second.approved
    settled(page, 'run_shell', 'Denied for this session by ada')


def test_shortened_text_has_a_page_of_its_own_and_cannot_be_remembered(site, visit):
    page = visit()
    text = '\n'.join(f'line {number}' for number in range(400))
    site.ask(requests.request('write_file', presentation=ApprovalPresentation(type='file_content', content=text)))

    expect(card(page, 'write_file')).to_contain_text('Some content is not shown.')
    expect(card(page, 'write_file').get_by_text('line 200', exact=True)).to_have_count(0)
    expect(card(page, 'write_file').locator('details')).to_have_count(0)
    page.get_by_role('link', name='Show everything').click()

    expect(page.get_by_text('line 200', exact=True)).to_be_visible()


def test_a_group_is_answered_together(site, visit):
    page = visit()
    batch = [requests.request(args={'path': name}, group_id='tidy') for name in ('a', 'b', 'c')]
    asked = site.ask(*batch)

    page.get_by_role('button', name='Approve all 3').click()

    assert [decision.approved for decision in site.decisions(asked)] == [True] * 3
    expect(page.locator('.outcome.approved')).to_have_count(3)


def test_the_calls_of_one_response_are_answered_together(site, visit):
    page = visit()
    alone = site.ask(requests.command())
    buttons_are_ready(page, 'run_shell')
    asked = site.ask(requests.edit(), requests.request(), requests.request('make_folder'))

    expect(page.get_by_text('The 3 requests above belong together.')).to_be_visible()
    # The form of two of them, which may have been there before the third arrived, is out of sight.
    expect(page.locator('form.group:not(.moved)')).to_have_count(1)
    page.get_by_role('button', name='Approve all 3').click()

    assert [decision.approved for decision in site.decisions(asked)] == [True] * 3
    expect(page.locator('.outcome.approved')).to_have_count(3)
    assert not alone.done()


def test_the_requests_of_a_response_are_in_its_order_however_they_arrive(site, visit):
    def post(position, batch='b1'):
        metadata = {'batch_id': batch, 'position': position, 'batch_size': 3}
        name = f'{batch}_{position}'
        site.post(requests.request(name, metadata=metadata))
        buttons_are_ready(page, name)

    page = visit()
    post(2)
    post(1, 'b2')
    page.evaluate("document.querySelector('article').isSame = true")
    for position in (3, 1):
        post(position)

    headings = page.locator('article h2')
    expect(headings).to_have_text(['b1_1', 'b1_2', 'b1_3', 'b2_1'])
    expect(page.locator('article:nth-of-type(3) + form')).to_contain_text('Approve all 3')
    assert page.evaluate("document.querySelectorAll('article')[1].isSame")
    page.reload()
    expect(headings).to_have_text(['b1_1', 'b1_2', 'b1_3', 'b2_1'])


def test_times_are_shown_in_the_time_zone_of_the_reader(site, visit):
    tokyo = visit(timezone_id='Asia/Tokyo')
    asked = site.ask(requests.request())
    buttons_are_ready(tokyo, 'delete_file')
    without_script = visit('bob', java_script_enabled=False)
    until_shown(without_script, 'delete_file')
    expect(card(without_script, 'delete_file').locator('time').first).to_have_text(
        re.compile(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC')
    )

    card(tokyo, 'delete_file').get_by_role('button', name='Approve delete_file').click()
    site.decisions(asked)
    settled(tokyo, 'delete_file', 'Approved by ada')

    def times():
        # The zone is nine hours ahead all the year.
        shown = (
            'time => [time.textContent, new Date(Date.parse(time.dateTime) + 9 * 3600e3).toISOString().slice(11, 19)]'
        )
        return tokyo.evaluate(f"[...document.querySelectorAll('article time')].map({shown})")

    for path, count in (('', 3), ('history', 2)):
        if path:
            tokyo.goto(f'http://{site.host}/{path}')
        found = times()
        assert len(found) == count
        assert all(expected in text for text, expected in found)
        assert 'UTC' not in tokyo.locator('main').inner_text()


def test_the_history_has_the_days_of_the_reader(site, visit):
    asked = site.ask(requests.request())
    kiritimati = visit(timezone_id='Pacific/Kiritimati')  # fourteen hours ahead all the year
    buttons_are_ready(kiritimati, 'delete_file')
    card(kiritimati, 'delete_file').get_by_role('button', name='Approve delete_file').click()
    site.decisions(asked)
    kiritimati.goto(f'http://{site.host}/history')

    now = 'new Date(Date.now() + 14 * 3600e3).toISOString().slice(0, 10)'
    today = kiritimati.evaluate(now)
    weekday = kiritimati.evaluate(f"new Date({now}).toLocaleDateString([], {{dateStyle: 'full', timeZone: 'UTC'}})")
    expect(kiritimati.locator('h2.day')).to_have_text([weekday])

    kiritimati.get_by_label('Settled until').fill(today)
    kiritimati.get_by_role('button', name='Search').click()
    expect(card(kiritimati, 'delete_file')).to_have_count(1)
    assert 'T10%3A00%3A00.000Z' in kiritimati.url  # midnight there
    assert axe(kiritimati) == []

    kiritimati.get_by_label('Search').fill('no such words')
    kiritimati.keyboard.press('Enter')
    expect(kiritimati.get_by_text('No matching requests.')).to_be_visible()


def record_notifications(page, permission='granted'):
    page.evaluate(
        """(permission) => {
          window.shown = [];
          window.Notification = class {
            static permission = permission;
            static async requestPermission() { this.permission = 'granted'; }
            constructor(title, { body }) { window.shown.push([title, body]); }
            addEventListener() {}
          };
        }""",
        permission,
    )


def test_who_may_answer_after_a_time_is_notified_then(site, visit):
    page = visit('zoe')
    record_notifications(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    later = Escalation(after='2s', to=ApproverRule(users={'zoe'}))
    rules = {'delete_file': ApproverRule(users={'ada'}, escalate=later)}
    asked = site.ask(requests.request(), controller=ApprovalController(ui=InboxUI(site.agents, approvers=rules)))

    expect(page.get_by_text('zoe may not answer this request: only listed approvers may answer')).to_be_visible()
    assert page.evaluate('shown') == []
    page.get_by_role('button', name='Approve', exact=False).first.click()

    assert site.decisions(asked)[0].decided_by == ('zoe',)
    assert page.evaluate('shown') == [['Approval requested', 'delete_file']]
    expect(page.get_by_text('1 answered')).to_be_visible()


def test_notifications_are_offered_and_name_the_tool_alone(site, visit):
    page = visit()
    record_notifications(page, 'default')
    page.get_by_role('button', name='Notify me').click()
    expect(page.get_by_role('button', name='Notify me')).to_have_count(0)

    site.ask(requests.request())
    expect(card(page, 'delete_file')).to_be_visible()
    assert page.evaluate('shown') == []  # the page is in sight
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    site.ask(requests.command())

    expect(card(page, 'run_shell')).to_be_visible()
    assert page.evaluate('shown') == [['Approval requested', 'run_shell']]
    expect(page).to_have_title('(2) Open requests · Approvals')


def test_a_used_link_says_how_to_get_a_new_one(site, browser, visit):
    link = site.link()
    first, second = visit('bob'), visit('bob')
    first.goto(link)
    expect(first.get_by_text('Logged in as ada')).to_be_visible()
    second.context.clear_cookies()

    second.goto(link)

    expect(second.get_by_role('alert')).to_contain_text('A link works only once, and expires after an hour')
    expect(second.get_by_role('alert')).to_contain_text('For a new link, press Enter in the terminal')


def test_filter_of_the_list_is_kept(site, visit):
    page = visit()
    site.ask(requests.edit())
    site.ask(requests.command())
    buttons_are_ready(page, 'run_shell')

    page.get_by_label('Tool').select_option('edit_file')
    page.get_by_role('button', name='Filter').click()
    expect(page.locator('article')).to_have_count(1)
    site.ask(requests.structured())
    site.ask(requests.edit(reason='Again.'))

    expect(page.locator('article')).to_have_count(2)
    expect(page.get_by_text('insert_rows')).to_have_count(1)  # among the choices of the filter


def test_lineage_and_history_are_shown(site, visit):
    page = visit()
    asked = site.ask(requests.nested())

    expect(card(page, 'send_mail')).to_contain_text('gardener, called by planner through delegate')
    card(page, 'send_mail').get_by_role('button', name='Deny').click()
    site.decisions(asked)
    page.get_by_role('link', name='History').click()

    expect(card(page, 'send_mail').locator('.outcome')).to_contain_text('Denied by ada')


def test_first_of_two_browsers_answers_and_the_second_sees_that(site, visit):
    ada, bob = visit('ada'), visit('bob')
    asked = site.ask(requests.request())
    for page in (ada, bob):
        buttons_are_ready(page, 'delete_file')
    # Bob's page does not hear of anything any more, so that his click comes second.
    bob.route(re.compile('/(events|api)'), lambda route: route.abort())
    bob.evaluate("""() => {
        const real = window.fetch;
        window.fetch = (to, how) => how?.method ? real(to, how) : new Promise(() => {});
    }""")

    card(ada, 'delete_file').get_by_role('button', name='Deny').click()
    settled(ada, 'delete_file', 'Denied by ada')
    card(bob, 'delete_file').get_by_role('button', name='Approve delete_file').click()

    expect(bob.get_by_role('alert').filter(has_text='no longer open')).to_contain_text("denied by 'ada'")
    assert [decision.approved for decision in site.decisions(asked)] == [False]


def test_answer_given_elsewhere_appears_on_an_open_page(site, visit):
    ada, bob = visit('ada'), visit('bob')
    site.ask(requests.request())
    buttons_are_ready(bob, 'delete_file')

    card(ada, 'delete_file').get_by_role('button', name='Approve delete_file').click()

    settled(bob, 'delete_file', 'Approved by ada')
    expect(card(bob, 'delete_file').get_by_role('button')).to_have_count(0)


def test_a_run_that_is_cancelled_takes_its_request_back(site, visit):
    page = visit()
    asked = site.ask(requests.request())
    buttons_are_ready(page, 'delete_file')

    asked.cancel()

    settled(page, 'delete_file', 'Withdrawn')


def test_answered_requests_can_be_cleared(site, visit):
    page = visit()
    site.ask(requests.request())
    card(page, 'delete_file').get_by_role('button', name='Deny').click()
    settled(page, 'delete_file', 'Denied')

    page.get_by_role('button', name='Clear answered').click()

    expect(page.get_by_text('No open requests.')).to_be_visible()


def test_page_can_be_used_with_the_keyboard_alone(site, visit):
    page = visit()
    asked = site.ask(requests.request())
    buttons_are_ready(page, 'delete_file')

    page.keyboard.press('Tab')
    assert page.evaluate('document.activeElement.textContent') == 'Skip to the content'
    page.keyboard.press('Enter')
    reach(page, 'TEXTAREA')
    page.keyboard.type('No.')
    reach(page, 'BUTTON', 'Deny')
    page.keyboard.press('Enter')

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.note) == (False, 'No.')
    settled(page, 'delete_file', 'Denied')
    assert page.evaluate('document.activeElement.tagName') == 'H2'


def reach(page: Page, tag: str, text: str = ''):
    """Press Tab until it is there."""
    for _ in range(30):
        page.keyboard.press('Tab')
        if page.evaluate('[document.activeElement.tagName, document.activeElement.textContent]') == [tag, text]:
            return
    raise AssertionError(f'{tag} {text} cannot be reached')


@pytest.mark.parametrize('has_script', [True, False])
@pytest.mark.parametrize('field', ['Note', 'exactly this call'])
def test_enter_in_a_field_answers_nothing(site, visit, has_script, field):
    asked = site.ask(requests.command())
    page = visit(java_script_enabled=has_script)
    until_shown(page, 'run_shell')
    sent = []
    page.on('request', lambda request: sent.append(request.method))

    card(page, 'run_shell').get_by_text('Approve and remember').click()
    card(page, 'run_shell').get_by_label(field).press('Enter')
    card(page, 'run_shell').get_by_label(field).press('Enter')

    # A request that Enter sent would be under way before the next page is loaded.
    page.reload()
    assert 'POST' not in sent
    assert not asked.done()
    buttons_are_ready(page, 'run_shell')


def test_page_on_postgresql_survives_a_restart_of_the_database(site_on_postgres, visit_on_postgres, postgres):
    page = visit_on_postgres()
    first = site_on_postgres.ask(requests.request())
    card(page, 'delete_file').get_by_role('button', name='Approve delete_file').click()
    [decision] = site_on_postgres.decisions(first)
    assert (decision.approved, decision.decided_by) == (True, ('ada',))
    settled(page, 'delete_file', 'Approved by ada')
    second = site_on_postgres.ask(requests.command())
    buttons_are_ready(page, 'run_shell')

    postgres.stop()
    try:
        card(page, 'run_shell').get_by_role('button', name='Deny run_shell').click()
        expect(card(page, 'run_shell').locator('.problem')).to_be_visible()
        assert not second.done()
    finally:
        postgres.start()
    for _ in range(40):
        page.wait_for_timeout(250)  # it says: in a moment
        if second.done():
            break
        if (deny := card(page, 'run_shell').get_by_role('button', name='Deny run_shell')).count():
            with contextlib.suppress(PlaywrightTimeout):  # answered meanwhile, so it is gone
                deny.click(timeout=1000)

    [decision] = site_on_postgres.decisions(second)
    assert (decision.approved, decision.decided_by) == (False, ('ada',))
    settled(page, 'run_shell', 'Denied by ada')


def test_forms_work_without_scripts(site, visit):
    asked = site.ask(requests.request())
    page = visit(java_script_enabled=False)
    until_shown(page, 'delete_file')

    card(page, 'delete_file').get_by_label('Note').fill('Not now.')
    card(page, 'delete_file').get_by_role('button', name='Deny').click()

    [decision] = site.decisions(asked)
    assert (decision.approved, decision.note) == (False, 'Not now.')
    expect(page.get_by_text('No open requests.')).to_be_visible()


def test_a_phone_shows_everything_without_scrolling_to_the_side(site, visit):
    page = visit(**PHONE)
    site.ask(requests.edit())
    asked = site.ask(requests.command('git push ' + '--option=value' * 30))
    buttons_are_ready(page, 'run_shell')

    assert page.evaluate('document.documentElement.scrollWidth') == 390
    for button in page.get_by_role('button').all():
        box = button.bounding_box()
        assert box is None or (box['x'] >= 0 and box['x'] + box['width'] <= 390 and box['height'] >= 36)
    card(page, 'run_shell').get_by_role('button', name='Deny').tap()
    assert [decision.approved for decision in site.decisions(asked)] == [False]


@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('size', [TALL, PHONE], ids=['wide', 'phone'])
def test_a_screen_reader_finds_its_way(site, visit, scheme, size):
    page = visit(color_scheme=scheme, bypass_csp=True, **size)
    empty = axe(page)
    odd = requests.request(args={'path': 'a\u202eb'}, group_id='g', reason='It is odd.')
    site.ask(requests.edit(), requests.command(), requests.structured(), odd, requests.request(group_id='g'))
    for count in (3, 2):  # of the response, and of the group in it
        expect(page.get_by_role('button', name=f'Deny all {count}')).to_be_enabled()
    page.locator('summary').first.click()
    full = axe(page)
    card(page, 'edit_file').get_by_role('button', name='Deny').click()
    settled(page, 'edit_file', 'Denied')
    answered = axe(page)
    page.get_by_role('link', name='History').click()
    expect(card(page, 'edit_file')).to_be_visible()
    history = axe(page)
    page.goto(f'http://{site.host}/')
    page.get_by_role('link', name='Edit').first.click()
    expect(page.get_by_label('Arguments of')).to_be_visible()
    editing = axe(page)
    page.goto(f'http://{site.host}/nowhere')

    assert [empty, full, answered, history, editing, axe(page)] == [[]] * 6


def test_screen_reader_hears_new_requests_and_their_outcomes(site, visit):
    page = visit()
    page.evaluate("""() => {
        window.heard = [];
        const status = document.getElementById('status');
        new MutationObserver(() => window.heard.push(status.textContent)).observe(status, {childList: true});
    }""")
    site.ask(requests.request())
    card(page, 'delete_file').get_by_role('button', name='Deny').click()
    settled(page, 'delete_file', 'Denied')

    page.wait_for_function('window.heard.length >= 2')

    heard = page.evaluate('window.heard')
    assert heard[0] == 'New request: delete_file'
    assert heard[1].startswith('delete_file: Denied by ada')


def test_page_follows_the_colour_scheme(site, visit):
    backs = [
        visit(color_scheme=scheme).evaluate('getComputedStyle(document.body).backgroundColor')
        for scheme in ('light', 'dark')
    ]

    light, dark = (sum(map(int, re.findall(r'\d+', back))) / 3 for back in backs)
    assert light > 200
    assert dark < 60


def test_request_that_has_just_arrived_takes_no_click(site, visit):
    page = visit()
    page.clock.install()
    site.ask(requests.request())
    approve = card(page, 'delete_file').get_by_role('button', name='Approve delete_file')

    expect(approve).to_be_disabled()
    page.clock.run_for(2000)

    expect(approve).to_be_enabled()


def test_a_script_in_a_request_does_not_run(site, visit):
    page = visit()
    evil = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>'
    shown = ApprovalPresentation(type='text', content=evil)
    site.ask(requests.request('a<script>', args={evil: evil}, presentation=shown, reason=evil, run_id=evil))
    buttons_are_ready(page, '"a<script>"')

    assert page.locator('.card img, .card script').count() == 0
    assert page.evaluate('window.owned') is None


def test_a_session_that_has_ended_shows_nothing_more(site, visit):
    page = visit()
    site.ask(requests.request())
    buttons_are_ready(page, 'delete_file')
    other = page.context.new_page()
    other.goto(f'http://{site.host}/')

    other.get_by_role('button', name='Log out').click()
    expect(other.get_by_text('You are logged out.')).to_be_visible()
    page.reload()

    expect(page.get_by_role('alert')).to_contain_text('You are not logged in.')
    expect(page.get_by_text('delete_file')).to_have_count(0)

"""Links for one request and one approver, without a login."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from tool_approval.core.request import Votes
from tool_approval.inbox import ApproverRule, Inbox
from tool_approval.ui.web import Limits, Links

from tests.approval.parts import request_for

from .parts import ADA, BOB, HOST, PEOPLE, Desk, client_of, text_of

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Phone:
    """Ada's phone: it has only the link."""

    def __init__(self, inbox: Inbox, **limits):
        self.seconds = 0.0
        self.links = Links(f'http://{HOST}', clock=lambda: self.seconds, now=lambda: NOON)
        client = client_of(
            inbox,
            lambda request: PEOPLE.get(request.headers.get('x-user')),
            links=self.links,
            clock=lambda: 0.0,
            limits=Limits(**limits),
        )
        self.desk = Desk(inbox, client)

    def link(self, entry, approver=ADA):
        return self.links.make(entry, approver).removeprefix(f'http://{HOST}')

    def get(self, path):
        return self.desk.client.get(path)

    def answer(self, link, entry, said='approve', *, shown=None, **headers):
        page = shown or self.get(link).text
        token = re.search(r'name="csrf" value="(\w+)"', page)[1]
        fields = {'csrf': token, 'answer': said, 'digest': entry.digest}
        return self.desk.send(f'{link}requests/{entry.id}/answer', fields, **headers)


@pytest.fixture
def phone(inbox):
    return Phone(inbox)


def test_opening_a_link_any_number_of_times_shows_the_request_and_answers_nothing(phone, desk):
    entry = desk.post(request_for('notes/old.txt'))
    link = phone.link(entry)

    pages = [phone.get(link), phone.get(link), phone.desk.client.head(link)]

    assert 'notes/old.txt' in text_of(pages[0].text)
    assert {page.status_code for page in pages} == {200}
    assert pages[0].headers['referrer-policy'] == 'no-referrer'
    assert pages[0].headers['cache-control'] == 'no-store'
    assert "default-src 'none'" in pages[0].headers['content-security-policy']
    assert 'set-cookie' not in pages[0].headers
    assert '/history' not in pages[0].text
    assert phone.get(f'{link}static/inbox.css').status_code == 200
    assert desk.now(entry).state == 'pending'


def test_an_answer_through_a_link_counts_as_its_approver_and_only_once(phone, desk):
    entry = desk.post()
    link = phone.link(entry)
    shown = phone.get(link).text

    first = phone.answer(link, entry)
    second = phone.answer(link, entry, 'deny', shown=shown)

    assert (first.status_code, first.headers['location']) == (303, link)
    answered = desk.now(entry)
    assert (answered.state, answered.answer.by.id) == ('approved', 'ada')
    assert second.status_code == 409
    assert 'Approved by ada' in text_of(second.text)
    assert 'Approved by ada' in text_of(phone.get(link).text)
    assert 'path' not in text_of(phone.get(link).text)


def test_a_link_says_who_decided_elsewhere(phone, desk):
    entry = desk.post()
    link = phone.link(entry)
    shown = phone.get(link).text
    desk.settle(entry, BOB, approved=False)

    late = phone.answer(link, entry, shown=shown)

    assert late.status_code == 409
    assert 'Denied by bob' in text_of(late.text)
    assert desk.now(entry).answer.by.id == 'bob'


def test_a_refused_answer_does_not_use_up_the_link(phone, desk):
    entry = desk.post()
    link = phone.link(entry)

    refused = [phone.answer(link, entry, 'always'), phone.answer(link, entry.model_copy(update={'digest': 'x'}))]

    assert [each.status_code for each in refused] == [422, 409]
    assert phone.answer(link, entry).status_code == 303


def test_the_approvers_of_the_request_are_checked_for_a_link_too(phone, desk):
    entry = desk.post(approvers=(ApproverRule(users={'ada'}),))
    shown = phone.get(phone.link(entry)).text

    refused = phone.answer(phone.link(entry, BOB), entry, shown=phone.get(phone.link(desk.post(), BOB)).text)

    assert 'value="approve"' in shown
    assert 'bob may not answer' in text_of(phone.get(phone.link(entry, BOB)).text)
    assert (refused.status_code, desk.now(entry).state) == (403, 'pending')


def test_each_link_gives_one_vote_that_of_its_approver(phone, desk):
    votes = Votes(needed=2, agreed=('ada',))
    entry = desk.post(request_for().model_copy(update={'votes': votes}))

    again = phone.answer(phone.link(entry), entry)
    second = phone.answer(phone.link(entry, BOB), entry)

    assert (again.status_code, 'another person must agree' in text_of(again.text)) == (403, True)
    assert second.status_code == 303
    assert desk.now(entry).outcome == 'Approved by bob (2 of 2)'


def test_a_link_opens_no_other_request_and_no_other_page(phone, desk):
    entry, other = desk.post(), desk.post(request_for('other.txt'))
    link = phone.link(entry)
    shown = phone.get(link).text

    found = [
        phone.answer(link, other, shown=shown).status_code,
        *(phone.get(f'{link}{path}').status_code for path in (f'requests/{other.id}', 'history', 'api/v1/session')),
        phone.get('/').status_code,
    ]

    assert found == [404, 404, 404, 404, 401]
    assert desk.now(other).state == 'pending'


def test_a_link_edits_its_request(phone, desk):
    entry = desk.post()
    link = phone.link(entry)
    token = re.search(r'name="csrf" value="(\w+)"', phone.get(link).text)[1]

    form = phone.get(f'{link}requests/{entry.id}/edit')
    preview = phone.desk.send(f'{link}requests/{entry.id}/edit', {'csrf': token, 'args': '{"path": "b"}'})

    assert form.status_code == 200
    assert f'action="{link}requests/{entry.id}/answer"' in preview.text


@pytest.mark.parametrize('secret', ['x', '%00', 'ä', 'A' * 43])
def test_an_unknown_link_is_refused(phone, desk, secret):
    desk.post()

    assert phone.get(f'/link/{secret}/').status_code == 404


def test_a_form_without_the_token_or_from_another_site_is_refused(phone, desk):
    entry = desk.post()
    link = phone.link(entry)
    of_ada = desk.token()

    without = phone.desk.send(f'{link}requests/{entry.id}/answer', {'answer': 'approve', 'digest': entry.digest})
    foreign = phone.answer(link, entry, origin='https://evil.test')

    assert (without.status_code, foreign.status_code) == (403, 403)
    assert of_ada not in phone.get(link).text
    assert desk.now(entry).state == 'pending'


def test_a_link_expires_with_its_request_or_after_a_week(phone, desk):
    with_deadline = desk.post(expires_at=NOON + timedelta(minutes=5))
    link, lasting = phone.link(with_deadline), phone.link(desk.post())

    phone.seconds = 299
    before = phone.get(link).status_code
    phone.seconds = 300
    after = phone.get(link)
    phone.link(desk.post())

    assert (before, after.status_code, phone.get(lasting).status_code) == (200, 404, 200)
    assert len(phone.links._links) == 2
    phone.seconds = 7 * 86_400
    assert phone.get(lasting).status_code == 404


def test_a_link_is_bound_to_what_the_request_said_when_it_was_sent(phone, desk):
    entry = desk.post()
    link = phone.link(entry.model_copy(update={'digest': '0' * 64}))

    assert phone.get(link).status_code == 409


def test_only_hashes_of_links_are_kept_and_a_link_has_256_bits(phone, desk):
    secret = phone.link(desk.post()).split('/')[2]

    assert re.fullmatch(r'[A-Za-z0-9_-]{43}', secret)
    assert secret not in repr(vars(phone.links))


def test_links_cannot_be_guessed_at_any_rate(inbox):
    phone = Phone(inbox, burst=3)

    assert [phone.get('/link/x/').status_code for _ in range(4)] == [404, 404, 404, 429]


def test_a_page_without_links_has_none(desk):
    assert desk.client.get('/link/x/').status_code == 404


def test_the_page_says_which_channels_could_not_be_notified(phone, desk):
    phone.links.unreached.add('<b>ada</b> (PHONE)')

    page = phone.desk.client.get('/', headers={'x-user': 'ada'}).text

    assert 'The last notification to <b>ada</b> (PHONE) failed.' in text_of(page)
    assert '<b>ada' not in page

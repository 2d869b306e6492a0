from tool_approval.ui.web import Limits, LocalLogin
from tool_approval.ui.web.guard import RateLimit
from tool_approval.ui.web.visitors import SESSION_S, TICKET_S

from .parts import ADA, BOB


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class FakeRequest:
    def __init__(self, session):
        self.cookies = {} if session is None else {'tool_approval': session}


def test_link_expires_if_it_is_not_opened_in_time():
    clock = Clock()
    login = LocalLogin(clock)
    early, late = login.ticket(ADA), login.ticket(BOB)

    clock.now = TICKET_S - 1
    session = login.redeem(early)
    clock.now = TICKET_S

    assert login(FakeRequest(session)) == ADA
    assert login.redeem(late) is None


def test_a_session_ends_by_itself():
    clock = Clock()
    login = LocalLogin(clock)
    session = login.redeem(login.ticket(ADA))
    clock.now = SESSION_S

    before = login(FakeRequest(session))
    login.redeem(login.ticket(BOB))

    assert before is None
    assert login(FakeRequest(session)) is None


def test_login_without_a_session_is_refused():
    login = LocalLogin()
    ticket = login.ticket(ADA)

    assert [login(FakeRequest(each)) for each in (None, '', 'x', ticket)] == [None] * 4


def test_rate_limit_forgets_the_client_that_was_silent_longest(monkeypatch):
    from tool_approval.ui.web import guard

    monkeypatch.setattr(guard, '_MOST_CLIENTS', 2)
    rate = RateLimit(Limits(burst=1), Clock())

    assert [rate.takes(client) for client in ('a', 'b', 'b', 'c', 'b', 'a')] == [True, True, False, True, False, True]

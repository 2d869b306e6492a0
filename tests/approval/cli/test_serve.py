"""`tool-approval serve`, as the process that it is."""

import asyncio
import http.client
import http.server
import io
import json
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest
from tool_approval.cli import serve as command_module
from tool_approval.cli.place import named_approver, named_store
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore

from tests.approval.parts import request_for

pytest.importorskip('uvicorn')


class Served:
    """The command while it runs."""

    def __init__(self, place, *arguments, stdin=None):
        # Apprise imports a deprecated module.
        warnings = ['-W', 'error', '-W', "ignore:'imghdr' is deprecated:DeprecationWarning"]
        command = [sys.executable, *warnings, '-P', '-m', 'tool_approval.cli', 'serve', '--port', '0', *arguments]
        environment = {**os.environ, 'XDG_STATE_HOME': str(place)}
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=place
        )

    def link(self):
        name, _, url = self.process.stdout.readline().strip().partition(': ')
        return name, urlsplit(url)

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def serve(tmp_path):
    made = []

    def start(*arguments, **streams):
        made.append(Served(tmp_path, *arguments, **streams))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


def ask(url, path, method='GET', body=None, **headers):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def test_a_link_opens_the_inbox_of_this_user_and_answers_reach_the_run(serve, tmp_path):
    served = serve('--approver', 'ada')
    name, url = served.link()

    _, headers, _ = ask(url, f'{url.path}?{url.query}')
    cookie = headers['set-cookie'].partition(';')[0]
    with Inbox(SQLiteStore(tmp_path / 'tool-approval' / 'inbox.sqlite')) as inbox:
        request_id = asyncio.run(inbox.post(request_for('a')))
        session = json.loads(ask(url, f'{url.path}api/v1/session', cookie=cookie)[2])
        digest = json.loads(ask(url, f'{url.path}api/v1/requests/{request_id}', cookie=cookie)[2])['digest']
        body = json.dumps({'digest': digest, 'approved': True})
        headers = {'cookie': cookie, 'content-type': 'application/json', 'x-csrf-token': session['csrf_token']}
        answered = ask(url, f'{url.path}api/v1/requests/{request_id}/decision', 'POST', body, **headers)
        state = asyncio.run(inbox.get(request_id)).state
    status, out, err = served.end()

    assert (name, url.hostname, session['id']) == ('ada', '127.0.0.1', 'ada')
    assert (answered[0], state) == (200, 'approved')
    assert (status, out) == (0, '')
    assert err.endswith('tool-approval: the page is closed\n')


@pytest.mark.parametrize(
    ('options', 'shown'),
    [((), 'of run'), (('--approver', 'ada'), None), (('--approver', 'ada', '--log', 'own.jsonl'), 'of mine')],
)
def test_the_page_shows_the_log_of_run_to_its_user_and_a_named_log_to_all(serve, tmp_path, options, shown):
    log = tmp_path / 'tool-approval' / 'audit' / 'decisions.jsonl'
    log.parent.mkdir(parents=True)
    log.write_text('{"event":"outcome","outcome":"executed","tool_name":"of run"}\n')
    (tmp_path / 'own.jsonl').write_text('{"event":"outcome","outcome":"executed","tool_name":"of mine"}\n')
    _, url = serve(*options).link()
    _, headers, _ = ask(url, f'{url.path}?{url.query}')

    status, _, page = ask(url, f'{url.path}log', cookie=headers['set-cookie'].partition(';')[0])

    assert status == (404 if shown is None else 200)
    assert [text for text in ('of run', 'of mine') if text in page] == ([] if shown is None else [shown])


class Visit:
    """A person who is logged in, as a program of theirs."""

    def __init__(self, url):
        self._url = url
        _, headers, _ = ask(url, f'{url.path}?{url.query}')
        self._headers = {'cookie': headers['set-cookie'].partition(';')[0], 'content-type': 'application/json'}
        self._headers['x-csrf-token'] = json.loads(self._ask('session')[1])['csrf_token']

    def _ask(self, path, method='GET', body=None):
        status, _, text = ask(self._url, f'{self._url.path}api/v1/{path}', method, body, **self._headers)
        return status, text

    def approve(self, entry):
        body = json.dumps({'digest': entry.digest, 'approved': True})
        return self._ask(f'requests/{entry.id}/decision', 'POST', body)[0]


def test_server_killed_during_an_answer_has_recorded_it_or_not_and_another_server_continues(serve, tmp_path):
    killed = serve()
    visit = Visit(killed.link()[1])
    with Inbox(SQLiteStore(tmp_path / 'tool-approval' / 'inbox.sqlite')) as inbox:

        async def post():
            return [await inbox.get(await inbox.post(request_for(str(number)))) for number in range(50)]

        async def states():
            return {entry.id: (await inbox.get(entry.id)).state for entry in entries}

        entries = asyncio.run(post())
        confirmed, lost = set(), None
        for number, entry in enumerate(entries):
            if number == 10:
                # At a random moment of one of the next answers.
                threading.Timer(random.uniform(0, 0.05), killed.process.kill).start()
            try:
                assert visit.approve(entry) == 200
            except (OSError, http.client.HTTPException):
                lost = entry
                break
            confirmed.add(entry.id)
        then = asyncio.run(states())
        another = Visit(serve().link()[1])
        again = {entry.id: another.approve(entry) for entry in entries}
        at_the_end = asyncio.run(states())

    assert lost is not None
    assert confirmed <= {each for each, state in then.items() if state == 'approved'} <= confirmed | {lost.id}
    assert set(then.values()) == {'approved', 'pending'}
    assert again == {each: 200 if state == 'pending' else 409 for each, state in then.items()}
    assert set(at_the_end.values()) == {'approved'}


def test_the_cookie_is_not_sent_to_other_servers_of_this_machine(serve):
    _, url = serve().link()

    status, headers, _ = ask(url, f'{url.path}?{url.query}')

    assert status == 303
    assert re.fullmatch(r'/[A-Za-z0-9_-]{16}/', url.path)
    assert f'Path={url.path};' in headers['set-cookie']
    assert ask(url, '/')[0] == 404


def test_token_of_a_link_is_not_logged(serve):
    served = serve()
    _, url = served.link()
    ask(url, f'{url.path}?{url.query}')
    ask(url, f'{url.path}nowhere?{url.query}')

    _, out, err = served.end()

    assert url.query.removeprefix('token=') not in out + err


def test_each_person_gets_a_link_of_their_own(serve):
    served = serve('--approver', 'ada', '--approver', 'bob=ops,dev', '--path', '/approvals')

    links = [served.link() for _ in range(2)]

    assert [(name, url.path) for name, url in links] == [('ada', '/approvals/'), ('bob', '/approvals/')]
    assert links[0][1].query != links[1][1].query


def test_enter_at_the_terminal_prints_new_links_that_work(serve):
    typed, terminal = os.openpty()
    served = serve('--approver', 'ada', '--approver', 'bob', stdin=terminal)
    first = [served.link() for _ in range(2)]

    os.write(typed, b'\n')
    second = [served.link() for _ in range(2)]

    assert [name for name, _ in second] == ['ada', 'bob']
    assert len({url.query for _, url in first + second}) == 4
    for _, url in first + second:
        assert ask(url, f'{url.path}?{url.query}')[0] == 303
    os.close(typed)
    os.close(terminal)
    code, out, err = served.end()
    assert (code, out) == (0, '')
    assert 'the Enter key prints new links' in err


def test_server_without_a_terminal_reads_no_input(serve):
    served = serve(stdin=subprocess.DEVNULL)
    served.link()

    _, out, err = served.end()

    assert (out, 'Enter' in err) == ('', False)


def test_server_in_the_background_is_not_stopped_by_reading_the_terminal(tool_approval, stopped, monkeypatch):
    ignored = []
    monkeypatch.setattr(command_module.signal, 'signal', lambda *given: ignored.append(given))
    monkeypatch.setattr(command_module, '_at_enter', lambda terminal, act: None)

    finished = tool_approval('serve', '--port', '0', is_terminal=True)

    assert 'the Enter key prints new links' in finished.err
    assert (signal.SIGTTIN, signal.SIG_IGN) in ignored


@pytest.mark.parametrize('nothing', [OSError(), b''], ids=['in the background', 'Ctrl-D'])
def test_server_waits_for_a_line_if_nothing_can_be_read(monkeypatch, nothing):
    answers = [nothing, b'\n', KeyboardInterrupt()]
    waited = []

    def read(descriptor, size):
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(command_module.os, 'read', read)
    monkeypatch.setattr(command_module.time, 'sleep', waited.append)
    printed = []

    with pytest.raises(KeyboardInterrupt):
        command_module._at_enter(0, lambda: printed.append('links'))

    assert (printed, waited) == (['links'], [1])


def test_serve_listens_on_loopback_only(serve):
    _, url = serve().link()

    assert url.hostname == '127.0.0.1'
    assert ask(url, url.path, host='evil.test')[0] == 421


def test_open_page_does_not_keep_the_server_from_ending(serve):
    served = serve()
    _, url = served.link()
    cookie = ask(url, f'{url.path}?{url.query}')[1]['set-cookie'].partition(';')[0]
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    connection.request('GET', f'{url.path}events', headers={'cookie': cookie})
    stream = connection.getresponse()
    begun = stream.readline()

    status, _, err = served.end()
    connection.close()

    assert (begun, status) == (b'retry: 2000\n', 0)
    assert 'Traceback' not in err


@pytest.fixture
def stopped(monkeypatch):
    """Record what would be served, instead of serving it."""
    from tool_approval.ui.web import serving

    seen = []

    def serve(app, listening, **rest):
        seen.append((listening.getsockname(), rest))

    monkeypatch.setattr(serving, 'serve', serve)
    return seen


def test_server_behind_a_proxy_answers_to_the_allowed_name(tool_approval, stopped):
    arguments = ['--path', '/approvals', '--allow-host', 'approvals.example', '--behind-proxy', '--port', '0']

    finished = tool_approval('serve', *arguments)

    assert finished.status == 0
    assert stopped[0][1] == {'path': '/approvals', 'trusts_proxy': True, 'beside': []}


def test_serving_on_all_addresses_warns(tool_approval, stopped):
    finished = tool_approval('serve', '--host', '0.0.0.0', '--allow-host', 'pc.example', '--port', '0')

    assert 'http://pc.example/' in finished.out
    assert 'without TLS, others can read it' in finished.err


def test_serve_accepts_an_ipv6_host(tool_approval, stopped):
    if not socket.has_ipv6 or not can_bind('::1'):
        pytest.skip('this machine has no IPv6 loopback; CI has')

    finished = tool_approval('serve', '--host', '::1', '--port', '0')

    assert ': http://[::1]:' in finished.out


def can_bind(host):
    with socket.socket(socket.AF_INET6) as tried:
        try:
            tried.bind((host, 0))
        except OSError:
            return False
        return True


def test_ctrl_c_ends_the_server_without_an_error(tool_approval, monkeypatch):
    from tool_approval.ui.web import serving

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, 'serve', interrupted)

    finished = tool_approval('serve', '--port', '0')

    assert (finished.status, finished.err.splitlines()[-1]) == (0, 'tool-approval: the page is closed')


@pytest.mark.parametrize(
    ('arguments', 'told'),
    [
        (['--host', '0.0.0.0'], '--allow-host'),
        (['--host', 'pc.example'], '--allow-host'),
        (['--approver', 'ada', '--approver', 'ada=ops'], 'given twice with the same name'),
        (['--approver', 'policy'], "--approver 'policy' is invalid"),
        (['--approver', '=ops'], "--approver '' is invalid"),
        (['--path', 'approvals'], '--path must look like'),
        (['--path', '/'], '--path must look like'),
        (['--path', '/a"b'], '--path must look like'),
        (['--port', '65536'], '--port must be'),
        (['--port', '-1'], '--port must be'),
        (['--allow-host', 'http://x'], "'http://x' is not a host name"),
        (['--store', '/dev/null/x'], '/dev/null'),
    ],
)
def test_invalid_serve_options_are_refused_in_one_line(tool_approval, arguments, told):
    finished = tool_approval('serve', '--port', '0', *arguments)

    assert (finished.status, finished.out) == (2, '')
    assert told in finished.err
    assert finished.err.count('\n') == 1


def test_taken_port_is_reported(tool_approval):
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()

        finished = tool_approval('serve', '--port', str(other.getsockname()[1]))

    assert finished.status == 2
    assert 'in use; try another --port' in finished.err


@pytest.mark.parametrize('dsn', ['postgresql://a b', 'postgres://%zz'])
def test_invalid_database_is_refused_without_quoting_it(tool_approval, dsn):
    pytest.importorskip('psycopg')

    finished = tool_approval('serve', '--store', dsn)

    assert finished.status == 2
    assert dsn not in finished.err


def test_postgresql_address_selects_the_postgresql_store():
    postgres = pytest.importorskip('tool_approval.inbox.stores.postgres')

    assert isinstance(named_store('postgresql://ada@localhost/inbox').inbox_store, postgres.PostgresStore)


@pytest.mark.parametrize('error', [KeyError, OSError])
def test_a_user_without_a_name_is_called_user(monkeypatch, error):
    def unnamed():
        raise error

    monkeypatch.setattr('getpass.getuser', unnamed)

    assert named_approver(None).id == 'user'


NOTIFY = """\
notify:
  people:
    ada: [ADA_PHONE, ADA_MAIL]
  webhook: {url: HOOK_URL, secret: HOOK_SECRET, people: {U1: bob}}
"""
VARIABLES = {
    'ADA_PHONE': 'ntfys://ntfy.example/s3cret-topic',
    'ADA_MAIL': 'mailtos://ada:s3cret@example.org',
    'HOOK_URL': 'https://bot.example/s3cret',
    'HOOK_SECRET': 'whsec_czNjcmV0czNjcmV0czNjcmV0czNjcmV0',
}
PEOPLE = ['--approver', 'ada', '--approver', 'bob', '--config', 'phone.yaml', '--port', '0']


@pytest.fixture
def phone(work, monkeypatch):
    pytest.importorskip('apprise')
    (work / 'phone.yaml').write_text(NOTIFY)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return work / 'phone.yaml'


def test_notifications_go_where_a_named_file_says(tool_approval, stopped, phone):
    finished = tool_approval('serve', *PEOPLE, '--allow-host', 'approvals.example', '--behind-proxy')

    assert finished.status == 0
    assert len(stopped[0][1]['beside']) == 3
    assert [line.partition(': ')[2] for line in finished.err.splitlines()[1:4]] == [
        'requests are sent to ada (ADA_PHONE)',
        'requests are sent to ada (ADA_MAIL)',
        'requests are sent to the webhook (HOOK_URL)',
    ]
    assert 'https://approvals.example/' in finished.out
    assert 's3cret' not in finished.out + finished.err


def test_a_link_is_sent_while_the_page_is_served_and_is_not_printed(serve, phone, tmp_path, monkeypatch):
    got = queue.Queue()

    class Ntfy(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.put(json.loads(self.rfile.read(int(self.headers['content-length'])))['message'])
            self.send_error(500)

        def log_message(self, *args):
            pass

    phone.write_text('notify: {people: {ada: [ADA_PHONE]}}')
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Ntfy) as ntfy:
        threading.Thread(target=ntfy.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv('ADA_PHONE', f'ntfy://127.0.0.1:{ntfy.server_address[1]}/s3cret-topic')
        served = serve('--approver', 'ada', '--config', str(phone))
        served.link()
        with Inbox(SQLiteStore(tmp_path / 'tool-approval' / 'inbox.sqlite')) as inbox:
            asyncio.run(inbox.post(request_for('notes.txt')))
            link = urlsplit(got.get(timeout=30).rpartition(' ')[2])
            shown = ask(link, link.path)
            while 'could not be notified' not in (line := served.process.stderr.readline()):
                assert line
        status, out, err = served.end()
        ntfy.shutdown()

    assert (shown[0], 'notes.txt' in shown[2]) == (200, True)
    assert 'ada (ADA_PHONE) could not be notified' in line
    assert status == 0
    assert link.path.split('/')[-2] not in out + err + line


def test_a_file_that_is_not_named_adds_no_notifications(tool_approval, stopped, phone):
    phone.rename(phone.with_name('approvals.yaml'))

    assert tool_approval('serve', '--port', '0').status == 0
    assert stopped[0][1]['beside'] == []


def test_links_that_open_only_on_this_machine_are_reported(tool_approval, stopped, phone):
    phone.write_text('notify: {people: {ada: [ADA_PHONE]}}')

    finished = tool_approval('serve', *PEOPLE)

    assert len(stopped[0][1]['beside']) == 1
    assert 'open only on this machine' in finished.err


def test_links_are_not_sent_for_a_page_that_others_can_listen_to(tool_approval, stopped, phone):
    finished = tool_approval('serve', *PEOPLE, '--host', '0.0.0.0', '--allow-host', 'pc.example')

    assert (finished.status, stopped) == (2, [])
    assert 'TLS' in finished.err


@pytest.mark.parametrize(
    ('settings', 'told'),
    [
        ('mode: strict', 'has no key `notify`'),
        ('notify: {people: {zoe: [ADA_PHONE]}}', "'zoe' is neither"),
        ('notify: {people: {ada: [NOWHERE]}}', "'NOWHERE' is neither"),
        ('notify: {people: {ada: [HOOK_SECRET]}}', 'is invalid: Apprise does not know this URL'),
        ('notify: {people: {ada: ["ntfy://x"]}}', 'notify.people.ada'),
        ('notify: {webhook: {url: HOOK_URL, secret: HOOK_URL, people: {U1: ada}}}', 'is invalid: the secret'),
        ('notify: {webhook: {url: HOOK_URL, secret: HOOK_SECRET, people: {}}}', 'notify.webhook.people'),
        ('notify: {webhook: {url: HOOK_URL, secret: HOOK_SECRET, people: {U1: zoe}}}', "'zoe' is neither"),
    ],
)
def test_settings_that_would_notify_nobody_are_refused(tool_approval, stopped, phone, settings, told):
    phone.write_text(settings)

    finished = tool_approval('serve', *PEOPLE)

    assert (finished.status, finished.out, stopped) == (2, '', [])
    assert told in finished.err
    assert 's3cret' not in finished.err


def test_a_channel_that_fails_is_named_at_the_terminal_once_and_on_the_page_until_it_works(capsys):
    from tool_approval.cli.output import Output

    unreached = set()
    seen = []
    output = Output()
    for is_notified in (True, False, False, True, False):
        command_module._report('ada (PHONE)', unreached, output, is_notified)
        seen.append(set(unreached))

    assert seen == [set(), {'ada (PHONE)'}, {'ada (PHONE)'}, set(), {'ada (PHONE)'}]
    assert capsys.readouterr().err.count('ada (PHONE) could not be notified') == 2


def test_a_terminal_that_is_gone_does_not_stop_the_notifications():
    from tool_approval.cli.output import Output

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    gone = Gone()
    unreached = set()

    command_module._report('ada (PHONE)', unreached, Output(gone, gone), is_notified=False)

    assert unreached == {'ada (PHONE)'}

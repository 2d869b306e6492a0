"""A developer's work with git, environments, packages and servers, with every question that it takes."""

import ensurepip
import functools
import socket
import ssl
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .scenario import Scenario, call, shell
from .test_scenarios import SHOP

ACTIVE = {'VIRTUAL_ENV': sys.prefix, 'PATH': f'{sys.prefix}/bin:/usr/bin:/bin'}
"""As the shell has it in which tool-approval was installed."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path, certificate: Path | None = None) -> Generator[str]:
    """The address on the loopback at which a folder is served; with a certificate and its key, over HTTPS."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(_Quiet, directory=str(folder)))
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix('.key'))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()
    try:
        yield f'http{"s" * (certificate is not None)}://127.0.0.1:{server.server_address[1]}'
    finally:
        server.shutdown()
        server.server_close()


def make_index(folder: Path) -> None:
    """Make a package index with one package."""
    wheel = folder / 'simple' / 'greeting' / 'greeting-1.0-py3-none-any.whl'
    wheel.parent.mkdir(parents=True)
    files = {
        'greeting.py': 'def greet():\n    return "Hello from a package"\n',
        'greeting-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n',
        'greeting-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    }
    record = 'greeting-1.0.dist-info/RECORD'
    with zipfile.ZipFile(wheel, 'w') as archive:
        for name, text in {**files, record: ''.join(f'{name},,\n' for name in [*files, record])}.items():
            archive.writestr(name, text)
    (wheel.parent / 'index.html').write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


def make_certificate(path: Path) -> None:
    """Make the certificate of an authority of one's own, which is also that of the loopback, and its key."""
    files = ('-out', path, '-keyout', path.with_suffix('.key'))
    name = ('-days', '2', '-subj', '/CN=Own', '-addext', 'subjectAltName=IP:127.0.0.1')
    command = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', *files, *name]
    subprocess.run(command, check=True, capture_output=True)


def make_environment(folder: Path) -> None:
    """Make a virtual environment with pip, faster than pip does."""
    venv.create(folder, symlinks=True)
    bundled = next((Path(ensurepip.__file__).parent / '_bundled').glob('pip-*.whl'), None)
    if bundled is None:
        pytest.skip('this Python comes without pip')
    zipfile.ZipFile(bundled).extractall(next(folder.glob('lib/python*/site-packages')))


def test_clone_edit_test_and_commit(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)
    origin = tmp_path / 'served' / 'shop.git'
    scenario.git('clone', '--quiet', '--bare', '.', str(origin))
    scenario.git('--git-dir', str(origin), 'update-server-info')
    scenario.talk.cwd = scenario.path = tmp_path / 'new'
    scenario.path.mkdir()

    with served(origin.parent) as address:
        results = scenario.play(
            'Get the shop.',
            shell(f'git clone --quiet {address}/shop.git'),
            shell('cat shop/shop.py'),
            questions=[('extra access: network', 'y')],
        )
    assert 'return "Hello " + name' in results[1]

    scenario.talk.cwd = scenario.path = scenario.path / 'shop'
    scenario.git('config', 'user.name', 'Ada')
    scenario.git('config', 'user.email', 'ada@example.com')
    results = scenario.play(
        'Mend the greeting, and commit it.',
        call('edit_file', path='shop.py', old_text='"Hello " + name', new_text='f"Hello, {name}!"'),
        shell('python -m pytest -q -p no:cacheprovider'),
        shell('git commit -q -am "Greet by name"'),
        shell('git log --oneline'),
        questions=[('╭─ edit_file', 'y'), ('extra access: writes to .git', 'y')],
        environment=ACTIVE,
    )

    assert '1 passed' in results[1]
    assert results[2] == '[no output]'
    assert 'Greet by name' in results[3]
    assert scenario.git('log', '-1', '--format=%an %s') == 'Ada Greet by name\n'
    assert scenario.git('status', '--porcelain', '--untracked-files=no') == ''


def test_a_package_of_an_index_is_installed_into_the_projects_environment(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository({**SHOP, '.gitignore': '.venv/\n'})
    make_index(tmp_path / 'index')
    make_environment(scenario.path / '.venv')

    with served(tmp_path / 'index') as address:
        results = scenario.play(
            'Use the package greeting.',
            shell(f'python -m pip install --quiet --disable-pip-version-check --index-url {address}/simple greeting'),
            shell('python -c "import greeting; print(greeting.greet())"'),
            questions=[('extra access: writes to .venv', 'y')],
            environment={'VIRTUAL_ENV': f'{scenario.path}/.venv', 'PATH': f'{scenario.path}/.venv/bin:/usr/bin:/bin'},
        )

    assert results[1] == 'Hello from a package'
    assert scenario.git('status', '--porcelain') == ''


def test_a_server_is_started_asked_and_stopped_by_one_command(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    command = (
        f'python -m http.server --bind 127.0.0.1 {port} >/dev/null 2>&1 & '
        f'curl --silent --retry 50 --retry-delay 1 --retry-connrefused http://127.0.0.1:{port}/shop.py; kill $!; wait'
    )

    results = scenario.play('Serve it.', shell(command), environment=ACTIVE)

    assert results[0] == SHOP['shop.py'].rstrip()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', port))


def test_a_command_that_lacks_the_network_fails_and_is_asked_about_with_it(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'prices.txt').write_text('tea 3\n')
    fetch = 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=3).read().decode())'
    scenario.write({'fetch.py': fetch})

    with served(tmp_path / 'data') as address:
        command = f'python3 fetch.py {address}/prices.txt'
        results = scenario.play(
            'Fetch the prices.',
            shell(command),
            shell(command, access=['network']),
            questions=[('extra access: network', 'y')],
        )

    assert 'Connection refused' in results[0]
    assert "[There was no network. Call again with access=['network']; the user is asked.]" in results[0]
    assert results[1] == 'tea 3'


def test_a_command_that_a_rule_allows_asks_for_the_access_that_it_needs(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)
    settings = tmp_path / 'mine.yaml'
    settings.write_text('extends: [default]\nshell:\n  rules: [{pattern: git commit, approval: false}]\n')
    scenario.write({'shop.py': 'def greet(name):\n    return "Hi " + name\n'})

    results = scenario.play(
        'Commit it.',
        shell('git commit -q -am "Greet shorter"'),
        questions=[('extra access: writes to .git', 'y')],
        options=('--config', str(settings)),
    )

    assert results == ['[no output]']
    assert scenario.git('log', '-1', '--format=%s') == 'Greet shorter\n'

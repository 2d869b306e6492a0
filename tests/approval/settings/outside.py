"""A repository, its remote, the user's home, and a person who is asked what may run outside of the sandbox."""

import asyncio
import base64
import subprocess
import textwrap
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tool_approval.os_sandbox import BubblewrapBackend
from tool_approval.settings import RUN_SHELL, open_workspace, parse_settings
from tool_approval.testing import RecordingUI

from tool_approval import ApprovalController, ApprovalRefused, execute_tool

GIT = '/usr/bin/git'
SETTINGS = """\
    sandbox:
      paths:
        project: {root: ., mode: rw, write_approval: false}
        suffix: {root: ../suffix, mode: rw, suffixes: [.sh]}
        reads: {root: ../reads, mode: ro}
    shell:
      default: {approval: false}
      host: [git push, git fetch, git ls-remote, tool, gh]
"""
USER = """\
[user]
    name = Ann
    email = ann@example.org
[init]
    defaultBranch = main
"""


class Place:
    """`work` is a repository with the remote `store`, a bare repository; `pwned` appears if an attack works."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.path, self.work, self.store, self.home = (
            folder,
            *(folder / each for each in ('work', 'store.git', 'home')),
        )
        self.pwned, self.bin, self.ui = folder / 'pwned', folder / 'bin', RecordingUI(lambda request: self.answer())
        for each in (self.work, self.home, self.bin, folder / 'suffix', folder / 'reads'):
            each.mkdir()
        (self.home / '.gitconfig').write_text(USER)
        monkeypatch.setenv('HOME', str(self.home))
        monkeypatch.setenv('GIT_CONFIG_NOSYSTEM', '1')
        for name in ('XDG_CONFIG_HOME', 'GIT_SSH_COMMAND', 'GIT_ASKPASS', 'SSH_ASKPASS'):
            monkeypatch.delenv(name, raising=False)
        self.set_path = lambda *folders: monkeypatch.setenv('PATH', ':'.join(map(str, folders)))
        self.set_path(self.bin, '/usr/bin', '/bin')
        self.answer = lambda: True
        self.host('git init -q --bare ../store.git; git init -q; echo 1 > f; git add -A; git commit -qm one')
        self.host('git remote add origin "$PWD/../store.git"; git config remote.origin.url "$(realpath ../store.git)"')
        self.host('git push -qu origin main; echo 2 > f; git commit -qam two')
        self.script(self.bin / 'tool', 'echo "tool ran: $*"')
        self.config = (self.work / '.git/config').read_bytes()
        self.open(SETTINGS)

    def open(self, text: str) -> None:
        settings = parse_settings(textwrap.dedent(text))
        self.workspace = open_workspace(settings, self.work, backend=BubblewrapBackend())
        self.controller = ApprovalController(policy=self.workspace.policy, ui=self.ui)

    def host(self, script: str) -> str:
        done = subprocess.run(
            ['/bin/bash', '-c', script],
            cwd=self.work,
            env={'HOME': str(self.home), 'PATH': '/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1'},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def script(self, path: Path, text: str) -> Path:
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        return path

    @property
    def attack(self) -> str:
        return f'touch {self.pwned}'

    @property
    def is_pushed(self) -> bool:
        return self.host('git rev-parse HEAD') == self.host('git -C ../store.git rev-parse main')

    async def call(self, command: str, *access: str, controller: ApprovalController | None = None) -> str:
        args = {'command': command, **({'access': list(access)} if access else {})}
        try:
            return await execute_tool(self.workspace.shell, RUN_SHELL, args, controller or self.controller)
        except ApprovalRefused as error:
            return f'refused: {error}'

    def run(self, command: str, *access: str, controller: ApprovalController | None = None) -> str:
        return asyncio.run(self.call(command, *access, controller=controller))

    @property
    def questions(self) -> list[list[str]]:
        return [list(request.presentation.metadata['extra_access']) for request in self.ui.requests]


class Backend(BaseHTTPRequestHandler):
    """Git over HTTP, for the user `ann` with the password `s3cret`."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        given = self.headers.get('Authorization', '')
        if given != 'Basic ' + base64.b64encode(b'ann:s3cret').decode():
            self.send_response(401)
            self.send_header('WWW-Authenticate', 'Basic realm="git"')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        path, _, query = self.path.partition('?')
        if self.headers.get('Transfer-Encoding') == 'chunked':
            body = b''
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        coding = self.headers.get('Content-Encoding', '')
        variables = {
            'GIT_PROJECT_ROOT': str(self.server.root),
            'GIT_HTTP_EXPORT_ALL': '1',
            'PATH_INFO': path,
            'QUERY_STRING': query,
            'REQUEST_METHOD': self.command,
            'CONTENT_TYPE': self.headers.get('Content-Type', ''),
            'CONTENT_LENGTH': str(len(body)),
            'HTTP_CONTENT_ENCODING': coding,
            'REMOTE_USER': 'ann',
            'PATH': '/usr/bin:/bin',
            'GIT_CONFIG_COUNT': '1',
            'GIT_CONFIG_KEY_0': 'safe.directory',
            'GIT_CONFIG_VALUE_0': '*',
        }
        done = subprocess.run([GIT, 'http-backend'], input=body, env=variables, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b'\r\n\r\n')
        lines = dict(line.split(': ', 1) for line in head.decode().split('\r\n'))
        self.send_response(int(lines.pop('Status', '200').split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Generator[str]:
    """Serve the repositories in a folder, and yield the address of `store.git`."""
    with ThreadingHTTPServer(('127.0.0.1', 0), Backend) as server:
        server.root = folder
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f'http://127.0.0.1:{server.server_port}/store.git'
        finally:
            server.shutdown()
            thread.join()

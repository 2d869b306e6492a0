"""Each message that the page on troubleshooting quotes is one that is printed."""

import ast
import re
from functools import cache

import pytest
from tool_approval.cli import main
from tool_approval.os_sandbox import BubblewrapBackend

from tool_approval import MissingExtraError

from .blocks import ROOT

PAGE = (ROOT / 'docs' / 'how-to' / 'troubleshooting.md').read_text()
MESSAGES = re.findall(r'^```text\n(.*)\n```$', PAGE, re.MULTILINE)
OF_PROGRAMS = (
    "touch: cannot touch 'notes.txt': Read-only file system",
    '/bin/bash: line 1: …: command not found',
    'curl: (6) Could not resolve host: …',
    'SSL: CERTIFICATE_VERIFY_FAILED … unable to get local issuer certificate',
    'cat: .env: Permission denied',
    'error: could not write config file …/.git/config: Device or resource busy',
    'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)',
)
"""Texts that commands and bubblewrap print, and not this project."""
PRINTED = tuple(
    each for each in MESSAGES if re.search('install bubblewrap|no model is named|is not installed', each) is not None
)
"""Messages that a test below prints, because they are put together of several texts."""


@cache
def our_texts() -> str:
    """All texts in the source, the constant parts of f-strings by themselves."""
    texts: list[str] = []
    for path in (ROOT / 'tool_approval' / 'tool_approval').glob('**/*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return '\0'.join(texts)


def pieces(message: str) -> list[str]:
    """The parts of a quoted message between what differs, and of what says why something failed."""
    return [piece for piece in re.split('…|: ', message.removeprefix('tool-approval: ')) if piece.strip(' .')]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 2
    return capsys.readouterr().err.rstrip('\n')


def test_every_block_is_one_message() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) == PAGE.count('```text') > 20


def test_messages_printed_whole_are_quoted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('TOOL_APPROVAL_MODEL', raising=False)
    no_bubblewrap = BubblewrapBackend(bwrap='/usr/bin/no-bwrap').probe()
    said = (
        f'OS sandbox        bubblewrap: {no_bubblewrap.reason}; {no_bubblewrap.install}',
        printed(capsys, 'run', 'Mend the tests'),
        f'tool-approval: {MissingExtraError("pydantic_ai", extra="cli")}',
    )
    patterns = {each: '.*'.join(map(re.escape, each.split('…'))) for each in MESSAGES}
    found = [message for each in said for message, pattern in patterns.items() if re.fullmatch(pattern, each)]

    assert sorted(found) == sorted(PRINTED)


@pytest.mark.parametrize('message', [each for each in MESSAGES if each not in {*OF_PROGRAMS, *PRINTED}])
def test_a_message_is_in_the_source(message: str) -> None:
    assert pieces(message)
    assert [piece for piece in pieces(message) if piece not in our_texts()] == []


def test_output_of_programs_is_quoted() -> None:
    assert set(OF_PROGRAMS) <= set(MESSAGES)

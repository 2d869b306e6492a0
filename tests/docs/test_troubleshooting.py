"""Each message that the page on troubleshooting quotes is one that is printed."""

import ast
import re
from functools import cache

import pytest

from .blocks import ROOT

PAGE = (ROOT / 'docs' / 'how-to' / 'troubleshooting.md').read_text()
MESSAGES = re.findall(r'^```text\n(.*)\n```$', PAGE, re.MULTILINE)
OF_PROGRAMS = (
    "touch: cannot touch 'notes.txt': Read-only file system",
    '/bin/bash: line 1: …: command not found',
    'curl: (6) Could not resolve host: …',
    'SSL: CERTIFICATE_VERIFY_FAILED … unable to get local issuer certificate',
    'cat: .env: Permission denied',
    'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)',
)
"""Texts that commands and bubblewrap print, and not this project."""


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


def test_every_block_is_one_message() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) == PAGE.count('```text') > 20


@pytest.mark.parametrize('message', [each for each in MESSAGES if each not in OF_PROGRAMS])
def test_a_message_is_in_the_source(message: str) -> None:
    assert pieces(message)
    assert [piece for piece in pieces(message) if piece not in our_texts()] == []


def test_output_of_programs_is_quoted() -> None:
    assert set(OF_PROGRAMS) <= set(MESSAGES)

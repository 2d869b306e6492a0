"""Without LangChain installed."""

import subprocess
import sys

import pytest

from tool_approval import MissingExtraError


def test_the_error_names_the_extra_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith('tool_approval.integrations.langchain')]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'langchain', None)

    with pytest.raises(MissingExtraError, match=r"pip install './tool_approval\[langchain\]'"):
        __import__('tool_approval.integrations.langchain')


def test_core_imports_without_langchain():
    check = (
        'import sys; sys.modules.update(langchain=None, langchain_core=None, langgraph=None, pydantic_ai=None); '
        'import tool_approval, tool_approval.testing; print(tool_approval.ApprovalController().mode)'
    )

    ended = subprocess.run([sys.executable, '-c', check], capture_output=True, text=True, timeout=60)

    assert (ended.stdout, ended.stderr) == ('interactive\n', '')

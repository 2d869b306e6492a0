"""Without the framework, the adapter says what to install."""

import importlib
import sys

import pytest

from tool_approval import MissingExtraError


def test_without_pydantic_ai_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, 'pydantic_ai', None)
    monkeypatch.delitem(sys.modules, 'tool_approval.integrations.pydantic_ai')

    with pytest.raises(MissingExtraError, match=r"pip install ./pydantic_ai_slim './tool_approval\[pydantic-ai\]'"):
        importlib.import_module('tool_approval.integrations.pydantic_ai')

"""What the pages about approval list is what there is."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import tool_approval.audit
import tool_approval.integrations.langchain
import tool_approval.integrations.pydantic_ai
import tool_approval.os_sandbox
import tool_approval.storage
import tool_approval.testing
import tool_approval.tools.file_sandbox
import tool_approval.tools.shell
from tool_approval.redact import TOKEN_SHAPES

import tool_approval

from .blocks import ROOT

AUDIT_LOG = (ROOT / 'docs' / 'how-to' / 'audit-log.md').read_text()
REFERENCE = (ROOT / 'docs' / 'reference' / 'approval.md').read_text()


def tables(text: str) -> dict[str, list[str]]:
    """The first column of each table, by the heading of that column in its order."""
    found: dict[str, list[str]] = {}
    for header, rows in re.findall(r'^\| (\w*) \|.*\n\|[-|]+\n((?:\|.*\n)+)', text, re.MULTILINE):
        found.setdefault(header, []).extend(row.split('|')[1].strip() for row in rows.splitlines())
    return found


def test_every_token_shape_is_in_the_table_in_its_order():
    assert tables(AUDIT_LOG)['shape'] == list(TOKEN_SHAPES)


def test_every_field_of_a_line_is_in_a_table():
    fields: set[str] = {'line', 'previous', 'mac'}

    class Sink:
        def record(self, entry: Mapping[str, Any]) -> None:
            fields.update(entry)

    def delete(path: str) -> str:
        return 'deleted'

    controller = tool_approval.ApprovalController('approve_all', audit=Sink())
    asyncio.run(tool_approval.execute_tool(delete, 'delete', {'path': 'a'}, controller, default='required'))

    assert set(re.findall(r'`(\w+)`', ' '.join(tables(AUDIT_LOG)['field']))) == fields


def test_every_public_name_is_in_the_reference():
    listed = set(re.findall(r'^::: ([\w.]+)$', REFERENCE, re.MULTILINE))
    modules = (
        tool_approval,
        tool_approval.integrations.pydantic_ai,
        tool_approval.integrations.langchain,
        tool_approval.storage,
        tool_approval.audit,
        tool_approval.tools.file_sandbox,
        tool_approval.tools.shell,
        tool_approval.os_sandbox,
        tool_approval.testing,
    )
    public = {f'{module.__name__}.{name}' for module in modules for name in module.__all__ if name != '__version__'}

    assert listed == public

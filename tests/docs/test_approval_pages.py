"""The pages about approval list exactly what the code has."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_approval.core.redact import TOKEN_SHAPES
from tool_approval.settings import SettingsAudit, load_settings
from tool_approval.testing import RecordingUI

import tool_approval

from .blocks import ROOT

AUDIT_LOG = (ROOT / 'docs' / 'reference' / 'audit-log.md').read_text()


def tables(text: str) -> dict[str, list[str]]:
    """The first column of each table, by the heading of that column in its order."""
    found: dict[str, list[str]] = {}
    for header, rows in re.findall(r'^\| (\w*) \|.*\n\|[-|]+\n((?:\|.*\n)+)', text, re.MULTILINE):
        found.setdefault(header, []).extend(row.split('|')[1].strip() for row in rows.splitlines())
    return found


def test_every_token_shape_is_in_the_table_in_its_order():
    assert tables(AUDIT_LOG)['shape'] == list(TOKEN_SHAPES)


def test_every_field_of_a_line_is_in_a_table(tmp_path: Path):
    fields: set[str] = {'line', 'previous', 'mac'}

    class Sink:
        def record(self, entry: Mapping[str, Any]) -> None:
            fields.update(entry)

    def delete(path: str) -> str:
        return 'deleted'

    sink = SettingsAudit(Sink(), load_settings(directory=tmp_path))
    controller = tool_approval.ApprovalController('approve_all', audit=sink)
    asyncio.run(tool_approval.execute_tool(delete, 'delete', {'path': 'a'}, controller, default='required'))
    answer = tool_approval.ApprovalDecision(approved=False, response='done by hand', decided_by=('ada',))
    rules = tool_approval.ApprovalPolicy(
        {'delete': {'approval': 'required', 'answers': ['respond'], 'approvers': 'leads'}},
        approvers={'leads': {'users': ['ada']}},
    )
    ui = tool_approval.Reviewed(lambda call: {'approve': False}, then=RecordingUI(answer), may_approve={}, shadow=True)
    asking = tool_approval.ApprovalController(policy=rules, ui=ui, audit=sink)
    asyncio.run(tool_approval.execute_tool(delete, 'delete', {'path': 'a'}, asking))
    unknown = tool_approval.ApprovalRequest(tool_name='delete', args={'path': 'a'})
    controller.record_outcome(unknown, 'executed', settled_by='ada')
    controller.record_decision(unknown, approved=True, note=None, by='other', answered_by='ada')

    assert set(re.findall(r'`(\w+)`', ' '.join(tables(AUDIT_LOG)['field']))) == fields


def test_every_story_of_an_operator_has_tests_that_exist():
    page = (ROOT / 'tests' / 'approval' / 'operator_stories.md').read_text()
    rows = re.findall(r'^\| (\d+) \|.*\|(.*)\|$', page, re.MULTILINE)

    named = {number: re.findall(r'`([\w/]+\.py)::(test_\w+)`', tests) for number, tests in rows}

    assert list(named) == [str(number) for number in range(1, 19)]
    assert [number for number, tests in named.items() if not tests] == []
    missing = [
        f'{file}::{name}'
        for file, name in {test for tests in named.values() for test in tests}
        if not re.search(rf'^(async )?def {name}\(', (ROOT / 'tests' / 'approval' / file).read_text(), re.MULTILINE)
    ]
    assert missing == []

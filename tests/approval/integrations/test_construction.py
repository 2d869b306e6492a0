"""An argument of a wrong type is refused where it is given, with what is wanted instead."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import UserError
from pydantic_ai_deferred import Agent
from pydantic_ai_deferred import DeferredToolHandler as Capability
from tool_approval.audit import JsonlAuditSink
from tool_approval.durable import Ledger
from tool_approval.durable.store import DurableStore
from tool_approval.inbox import ApproverRule, Inbox, InboxUI
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
from tool_approval.integrations.pydantic_ai import ApprovalToolset
from tool_approval.integrations.pydantic_ai.file_toolset import FileToolset
from tool_approval.integrations.pydantic_ai.shell_toolset import ShellToolset
from tool_approval.storage import FileApprovalStore
from tool_approval.testing import RecordingUI, ScriptedUI
from tool_approval.tools.file_sandbox import FileSandbox, FileTools
from tool_approval.ui.slack import SlackBot
from tool_approval.ui.terminal import TerminalUI
from tool_approval.ui.web import inbox_app

from tests.approval.parts import run_tool
from tests.tables import table
from tool_approval import ApprovalController, ApprovalMemory, ApprovalPolicy, FirstOf

STORE = SQLiteStore('inbox.sqlite')
INBOX = Inbox(STORE)
WEB: dict[str, Any] = {'authenticate': lambda request: None, 'hosts': ['localhost']}
SLACK: dict[str, Any] = {'token': 'xoxb-1', 'channel': 'C024BE91L'}
RULE = ApproverRule(users=frozenset({'ada'}))


class NoUI:
    choose = 'a value'


@table(
    'make, problem',
    [
        (lambda: ApprovalController(ui=NoUI()), '`ui` must be an object with a method `choose'),
        (lambda: ApprovalController(ui=RecordingUI), 'not the class RecordingUI'),
        (
            lambda: ApprovalController(memory=STORE),
            'give a store to `ApprovalMemory(store)`, not a value of type SQLit',
        ),
        (lambda: ApprovalController(memory=ApprovalMemory), 'not the class ApprovalMemory'),
        (lambda: ApprovalController(audit='audit.jsonl'), '`audit` must be an audit sink such as `JsonlAuditSink('),
        (lambda: ApprovalController(presenters=['pay']), '`presenters` must be a mapping'),
        (lambda: ApprovalController(presenters={'pay': 'text'}), "`presenters['pay']` must be a function"),
        (lambda: ApprovalController(timeout='4'), '`timeout` must be a number of seconds'),
        (lambda: ApprovalController(key='secret'), '`key` must be bytes'),
        (lambda: ApprovalController(policy='approvals.yaml'), '`ApprovalPolicy.from_yaml` reads the text'),
        (lambda: ApprovalController(policy=Path('approvals.yaml')), '`ApprovalPolicy.from_yaml` reads the text'),
        (lambda: ApprovalPolicy.from_yaml(Path('policy.yaml')), 'read the file with `path.read_text()`'),
        (lambda: ApprovalPolicy.from_yaml({'tools': {}}), '`text` must be the text of the document'),
        (lambda: ApprovalMemory('approvals.json'), '`store` must be a store such as `FileApprovalStore(project)`'),
        (lambda: ApprovalMemory(is_allowed=['ada']), '`is_allowed` must be a function'),
        (lambda: ApprovalMemory(key='secret'), '`key` must be bytes'),
        (lambda: FirstOf([RecordingUI()]), '`ui` must be an object with a method `choose'),
        (lambda: JsonlAuditSink('audit.jsonl', key='k' * 32), '`key` must be bytes; `load_key` reads or makes them'),
        (lambda: TerminalUI(memory=STORE), 'give a store to `ApprovalMemory(store)`'),
        (lambda: TerminalUI(presenters=['pay']), '`presenters` must be a mapping'),
        (lambda: Inbox('inbox.sqlite'), '`store` must be a store such as `SQLiteStore(path)`'),
        (lambda: Inbox(STORE, keep_history=30), '`keep_history` must be a `timedelta`'),
        (lambda: InboxUI(STORE), '`inbox` must be an `Inbox`; give a store to `Inbox(store)`'),
        (lambda: InboxUI(INBOX, timeout='60'), '`timeout` must be a number of seconds'),
        (lambda: InboxUI(INBOX, channels=InboxUI(INBOX)), '`channels` must be a sequence of channels'),
        (lambda: InboxUI(INBOX, channels=['C024BE91L']), '`channels` must be a sequence of objects with `posted`'),
        (lambda: InboxUI(INBOX, approvers=['ada']), '`approvers` must be a mapping'),
        (lambda: InboxUI(INBOX, approvers={'pay': ['ada']}), "`approvers['pay']` must be an `ApproverRule`"),
        (lambda: inbox_app(STORE, **WEB), '`inbox` must be an `Inbox`'),
        (lambda: inbox_app(INBOX, authenticate='ada', hosts=['localhost']), '`authenticate` must be a `LocalLogin`'),
        (lambda: inbox_app(INBOX, **WEB, secret='s' * 32), '`secret` must be bytes'),
        (lambda: SlackBot(STORE, **SLACK, approvers=RULE), '`inbox` must be an `Inbox`'),
        (lambda: SlackBot(INBOX, **SLACK, approvers=['U1']), '`approvers` must be an `ApproverRule`'),
        (lambda: DurableStore('inbox.sqlite'), '`inbox_store` must be a store'),
        (lambda: Ledger(STORE), '`store` must be a `DurableStore`; see `open_store`'),
        (lambda: FileSandbox('work'), '`config` must be a `SandboxConfig` or a mapping'),
        (lambda: FileToolset('work'), '`config` must be a `SandboxConfig` or a mapping'),
        (lambda: FileTools({'paths': {}}), '`sandbox` must be a `FileSandbox`'),
        (lambda: ShellToolset({'rules': []}), '`shell` must be a `ShellTool`'),
        (lambda: ScriptedUI('no'), "such as ['no'], not one string"),
        (lambda: ApprovalMiddleware(RecordingUI()), '`controller` must be an `ApprovalController`'),
        (lambda: run_tool(print, {}, RecordingUI()), '`controller` must be an `ApprovalController`'),
    ],
)
def test_argument_of_a_wrong_type_is_refused_when_it_is_given(make: Any, problem: str):
    with pytest.raises(TypeError, match=re.escape(problem)):
        make()


def test_langchain_wrapper_takes_a_controller():
    from langchain_core.tools import tool

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        return path

    with pytest.raises(TypeError, match='`controller` must be an `ApprovalController`'):
        ApprovalToolWrapper(delete, RecordingUI())


def test_file_of_the_approvals_is_no_project(tmp_path: Path):
    with pytest.raises(ValueError, match='give the file of the approvals as `path=`'):
        FileApprovalStore(tmp_path / 'approvals.json')


@table(
    'make, problem',
    [
        (
            lambda: ApprovalToolset(FileToolset({'paths': {}}), 1),
            '`ApprovalToolset` takes `Approvals` or an `ApprovalController`',
        ),
        (lambda: Agent(deferred_tool_handler=ApprovalController()), 'pass `Approvals(controller)`'),
        (lambda: Capability(ApprovalController()), 'pass `Approvals(controller)`'),
    ],
)
def test_parts_of_an_agent_of_a_wrong_type_are_refused_when_they_are_given(make: Any, problem: str):
    with pytest.raises(UserError, match=re.escape(problem)):
        make()

"""Post approval requests, wait for the answers, and check who may answer."""

from tool_approval.core.approvers import Approver, ApproverRule, Escalation, Timeout

from .entry import Answer, Content, InboxEntry
from .errors import (
    AlreadySettled,
    AnswerRefused,
    InboxError,
    InboxUnavailable,
    InboxUntrusted,
    InvalidAnswer,
    NotAnApprover,
    OtherContent,
    RequestTooLarge,
    UnknownRequest,
    refusal_text,
)
from .inbox import Inbox
from .inbox_ui import Channel, InboxUI, notify_channel
from .remembered import InboxApprovalStore
from .store import MOVES, InboxStore, Row, Settled, State

__all__ = (
    'MOVES',
    'AlreadySettled',
    'Answer',
    'AnswerRefused',
    'Approver',
    'ApproverRule',
    'Channel',
    'Content',
    'Escalation',
    'Inbox',
    'InboxApprovalStore',
    'InboxEntry',
    'InboxError',
    'InboxStore',
    'InboxUI',
    'InboxUnavailable',
    'InboxUntrusted',
    'InvalidAnswer',
    'NotAnApprover',
    'OtherContent',
    'RequestTooLarge',
    'Row',
    'Settled',
    'State',
    'Timeout',
    'UnknownRequest',
    'notify_channel',
    'refusal_text',
)

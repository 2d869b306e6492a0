"""Turn the entries of a log into the trace of `agentack`, so that a program of others can check the approvals.

The format is version 2 of AgentAck's trace: one JSON object for each event, of one session. The trace is made from the
log alone. Its actions consist of the tool's name and the two digests of the log, so the checker compares what was shown
with what ran, and reads no arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FOREVER = '9999-12-31T23:59:59Z'
"""End of an approval without a limit. Without any end, the checker would end it after five minutes."""

_Key = tuple[object, ...]


@dataclass(kw_only=True)
class _Open:
    """An action whose end is not yet known."""

    number: int
    action: Mapping[str, Any]
    has_request: bool


@dataclass
class _Trace:
    session: str
    number: int = 0
    at: str = ''
    asked: dict[_Key, list[_Open]] = field(default_factory=dict[_Key, list[_Open]])
    allowed: dict[_Key, list[_Open]] = field(default_factory=dict[_Key, list[_Open]])

    def event(self, kind: str, of: _Open | None, **more: Any) -> dict[str, Any]:
        named: dict[str, Any] = {}
        if of is not None:
            named['action_id'] = f'action-{of.number}'
            if of.has_request and kind != 'action_proposed':
                named['approval_id'] = f'approval-{of.number}'
        at = more.pop('at', None) or self.at
        return {'schema_version': 2, 'type': kind, 'timestamp': at, 'session_id': self.session, **named, **more}

    def propose(self, entry: Mapping[str, Any], *, has_request: bool) -> _Open:
        self.number += 1
        return _Open(number=self.number, action=_action(entry), has_request=has_request)

    def opened(self, action: _Open) -> Iterator[dict[str, Any]]:
        yield self.event('action_proposed', action, action=action.action)
        if action.has_request:
            yield self.event('approval_requested', action, action=action.action)

    def denied(self, action: _Open, reason: str) -> Iterator[dict[str, Any]]:
        yield self.event('approval_decision', action, decision='deny')
        yield self.event('action_blocked', action, reason=reason)


def agentack_events(entries: Iterable[Mapping[str, Any] | None], *, session: str = 'log') -> Iterator[dict[str, Any]]:
    """Yield the events of the trace.

    An edit denies the call that the model made and approves the call that the approver wrote. A decision from memory,
    or by mode, answers a request that is made at the same time. A call that ran unasked has no approval.

    Args:
        entries: The entries of a log, in order; `None` for a line that is not one.
        session: Id of the session in the trace. A trace has one session, and the log of many runs is one.
    """
    trace = _Trace(session)
    for entry in entries:
        if entry is None or not isinstance(entry.get('at'), str):
            continue
        trace.at = entry['at']
        match entry.get('event'):
            case 'question':
                waiting = trace.asked.setdefault(_key(entry, entry.get('digest')), [])
                if not waiting:  # else it was asked again
                    waiting.append(trace.propose(entry, has_request=True))
                    yield from trace.opened(waiting[-1])
            case 'decision':
                yield from _decision(trace, entry)
            case 'unasked':
                action = trace.propose(entry, has_request=False)
                yield from trace.opened(action)
                trace.allowed.setdefault(_key(entry, entry.get('digest')), []).append(action)
            case 'blocked':
                action = trace.propose(entry, has_request=True)
                yield from trace.opened(action)
                yield from trace.denied(action, 'blocked by the rules')
            case 'outcome':
                yield from _outcome(trace, entry)
            case _:
                pass
    yield trace.event('session_end', None)


def _decision(trace: _Trace, entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = trace.asked.get(_key(entry, entry.get('question_digest')))
    action = waiting.pop(0) if waiting else None
    if action is None:
        action = trace.propose(entry, has_request=True)
        yield from trace.opened(action)
    elif entry.get('has_changed_arguments') is True:
        yield from trace.denied(action, 'the approver changed the arguments')
        action = trace.propose(entry, has_request=True)
        yield from trace.opened(action)
    if entry.get('approved') is not True:
        reason = 'denied' if entry.get('response') is None else 'answered in place of the tool'
        yield from trace.denied(action, reason)
        return
    yield trace.event('approval_decision', action, decision='allow', expires_at=entry.get('expires_at') or FOREVER)
    trace.allowed.setdefault(_key(entry, entry.get('digest')), []).append(action)


def _outcome(trace: _Trace, entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    outcome, running = entry.get('outcome'), trace.allowed.get(_key(entry, entry.get('digest')))
    if outcome == 'responded':
        return  # the decision has said so
    # The newest: an older approval of the same call was left by a crash.
    action = running.pop() if running else None
    if outcome in ('executed', 'failed'):
        # Without an approval the checker has to see that the call ran.
        ran = action or trace.propose(entry, has_request=False)
        yield trace.event('action_executed', ran, action=_ran(entry, ran.action), at=entry.get('started_at'))
    elif action is not None:
        yield trace.event('action_blocked', action, reason=str(outcome))


def _action(entry: Mapping[str, Any]) -> dict[str, Any]:
    digests = {'digest': entry.get('digest'), 'public_digest': entry.get('public_digest')}
    return {'tool': str(entry.get('tool_name')), 'operation': 'call', 'parameters': digests}


def _ran(entry: Mapping[str, Any], approved: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the action of an outcome. If only one of the entries has a public digest, the keyed digests decide."""
    ran = _action(entry)
    both = ran['parameters']['public_digest'], approved['parameters']['public_digest']
    return {**ran, 'parameters': {**ran['parameters'], 'public_digest': both[1]}} if None in both else ran


def _key(entry: Mapping[str, Any], digest: object) -> _Key:
    return entry.get('tool_name'), entry.get('tool_call_id'), digest

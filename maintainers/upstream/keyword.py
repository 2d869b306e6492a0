"""Edits that declare `deferred_tool_handler` on agents, describe it, and pass it on to the preparation of a run."""

from __future__ import annotations

import libcst.matchers as m

from .insertions import exported, finally_last, imported, method, statement
from .places import Edit
from .signatures import argument, described, last_parameter, parameter

NAME = 'deferred_tool_handler'
PASS_ON = f'{NAME}={NAME}'
OF_RUN = f'{NAME}: DeferredToolHandler[AgentDepsT] | None = None'
OF_SPEC = f'{NAME}: DeferredToolHandler[Any] | None = None'

ABOUT_RUN = (
    'Optional [function][pydantic_ai.tools.DeferredToolHandler] that resolves deferred tool calls during this run, in '
    'place of the one the agent was created with.'
)
ABOUT_AGENT = (
    'Optional [function][pydantic_ai.tools.DeferredToolHandler] that resolves deferred tool calls during every run '
    'that is given no other, so that the run goes on. It gets what no capability has resolved and must resolve all '
    'of it.'
)
ABOUT_OVERRIDE = (
    'The deferred tool handler to use instead of those passed to the agent constructor and agent run. `None` '
    'overrides nothing.'
)
ABOUT_CHAT = 'Optional function that resolves deferred tool calls in this chat.'

_TYPE = imported('DeferredToolHandler', of=['..tools', 'pydantic_ai.tools'])


def _run(scope: str, *, found: int = 3, calls: int = 1) -> list[Edit]:
    """Return the edits of a run variant, whose overloads and docstring name every keyword."""
    return [
        parameter(scope, OF_RUN, before='conversation_id', found=found),
        described(scope, NAME, ABOUT_RUN, before='conversation_id'),
        *([argument(scope, PASS_ON, beside='deferred_tool_results', calls=calls)] if calls else []),
    ]


def _override(scope: str) -> list[Edit]:
    return [parameter(scope, OF_RUN, before='spec'), described(scope, NAME, ABOUT_OVERRIDE, before='spec')]


def _import_after(module: str, names: str) -> Edit:
    dots = len(module) - len(module.lstrip('.'))
    anchor = m.ImportFrom(relative=[m.Dot()] * dots, module=m.Name(module.lstrip('.')))
    code = f'from {"." * dots}_deferred_tool_handler import {names}\n'
    return statement('', code, after=m.SimpleStatementLine(body=[anchor]), what=f'`from {module} import ...`')


_CHECK = f'check_{NAME}({NAME})\n'

AGENT: list[Edit] = [
    _TYPE,
    _import_after('.._deferred_capabilities', f'check_{NAME}'),
    parameter('Agent.__init__', OF_RUN, before='capabilities', found=3),
    described('Agent.__init__', NAME, ABOUT_AGENT, before='capabilities'),
    statement(
        'Agent.__init__',
        f'{_CHECK}self._{NAME} = {NAME}\n',
        after=m.SimpleStatementLine(
            body=[m.Assign(targets=[m.AssignTarget(m.Attribute(m.Name('self'), m.Name('end_strategy')))])]
        ),
        what='assignment of `self.end_strategy`',
    ),
    statement(
        'Agent.__init__',
        f'self._override_{NAME}: ContextVar[DeferredToolHandler[AgentDepsT] | None] = ContextVar(\n'
        f"    '_override_{NAME}', default=None\n"
        ')\n',
        after=m.SimpleStatementLine(
            body=[m.AnnAssign(target=m.Attribute(m.Name('self'), m.Name('_override_root_capability')))]
        ),
        what='declaration of `self._override_root_capability`',
    ),
    parameter('Agent.from_spec', OF_SPEC, before='capabilities', found=5),
    described('Agent.from_spec', NAME, ABOUT_AGENT, before='capabilities'),
    argument('Agent.from_spec', PASS_ON, beside='max_concurrency', of='Agent'),
    parameter('Agent.from_file', OF_SPEC, before='capabilities', found=5),
    argument('Agent.from_file', PASS_ON, beside='max_concurrency'),
    *_run('Agent.iter'),
    parameter('Agent._prepare_run', OF_RUN, before='conversation_id'),
    statement(
        'Agent._prepare_run',
        _CHECK,
        before=m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(m.Name('binding'))])]),
        what='assignment of `binding`',
    ),
    argument(
        'Agent._prepare_run',
        f'{NAME}=self._resolve_{NAME}({NAME})',
        beside='default_max_retries',
        of='ToolManager[AgentDepsT]',
    ),
    argument(
        'Agent._resolve_realtime_session',
        f'{NAME}=self._resolve_{NAME}(None)',
        beside='default_max_retries',
        of='ToolManager[AgentDepsT]',
    ),
    method(
        'Agent',
        f'def _resolve_{NAME}(\n'
        f'    self, {NAME}: DeferredToolHandler[AgentDepsT] | None\n'
        ') -> DeferredToolHandler[AgentDepsT] | None:\n'
        '    """The handler a run asks, exactly one: override > run arg > agent init default."""\n'
        f'    return self._override_{NAME}.get() or {NAME} or self._{NAME}\n',
        before='_base_run_capability',
    ),
    *_override('Agent.override'),
    statement(
        'Agent.override',
        _CHECK,
        before=m.If(test=m.Call(func=m.Attribute(m.Name('_utils'), m.Name('is_set')), args=[m.Arg(m.Name('retries'))])),
        what='`if` about `retries`',
    ),
    statement(
        'Agent.override',
        f'if {NAME} is not None:\n'
        f'    {NAME}_token = self._override_{NAME}.set({NAME})\n'
        'else:\n'
        f'    {NAME}_token = None\n\n',
        before=m.Try(finalbody=m.Finally()),
        what='`try` around the `yield`',
    ),
    finally_last(
        'Agent.override',
        f'if {NAME}_token is not None:\n    self._override_{NAME}.reset({NAME}_token)\n',
        what='`try` around the `yield`',
    ),
]

ABSTRACT: list[Edit] = [
    _TYPE,
    _import_after('.._cancel', f'check_{NAME}'),
    *(
        edit
        for name in ('run', 'run_sync', 'run_stream', 'run_stream_sync', 'run_stream_events')
        for edit in _run(f'AbstractAgent.{name}')
    ),
    *_run('AbstractAgent.iter', calls=0),
    *_override('AbstractAgent.override'),
    *(
        edit
        for name in ('to_cli', 'to_cli_sync')
        for edit in (
            last_parameter(f'AbstractAgent.{name}', OF_RUN),
            described(f'AbstractAgent.{name}', NAME, ABOUT_CHAT, before='model'),
            argument(f'AbstractAgent.{name}', PASS_ON, beside='usage_limits'),
        )
    ),
    statement(
        'AbstractAgent.to_cli',
        _CHECK,
        before=m.SimpleStatementLine(body=[m.ImportFrom(module=m.Attribute(m.Name('rich'), m.Name('console')))]),
        what='import of `rich.console`',
    ),
]

CHAT: list[Edit] = [
    statement(
        '',
        'from .._deferred_tool_handler import DeferredToolHandler\n',
        before=m.SimpleStatementLine(body=[m.ImportFrom(relative=[m.Dot(), m.Dot()], module=m.Name('_run_context'))]),
        what='`from .._run_context import ...`',
    ),
    last_parameter('run_chat', OF_RUN),
    argument('run_chat', PASS_ON, beside='usage_limits', of='ask_agent'),
    parameter('ask_agent', OF_RUN, before='usage'),
    argument('ask_agent', PASS_ON, beside='usage_limits', calls=2),
]

WRAPPER: list[Edit] = [
    _TYPE,
    *_run('WrapperAgent.iter'),
    *_override('WrapperAgent.override'),
    statement(
        'WrapperAgent.override',
        # As with `retries`: an agent of a third party may not know the keyword.
        f"if {NAME} is not None:\n    forward_kwargs['{NAME}'] = {NAME}\n",
        after=m.If(test=m.Call(func=m.Attribute(m.Name('_utils'), m.Name('is_set')), args=[m.Arg(m.Name('retries'))])),
        what='`if` about `retries`',
    ),
]


def _durable(agent: str, *, events: int, workflows: tuple[str, ...] = ()) -> list[Edit]:
    """A durable agent.

    Args:
        agent: Its class.
        events: How many calls its `run_stream_events` passes keywords on in.
        workflows: The functions in its constructor that a run goes through.
    """
    return [
        _TYPE,
        *(
            edit
            for name in workflows
            for edit in (
                parameter(f'{agent}.__init__.{name}', OF_RUN, before='conversation_id'),
                argument(f'{agent}.__init__.{name}', PASS_ON, beside='deferred_tool_results'),
            )
        ),
        *(edit for name in ('run', 'run_sync', 'run_stream', 'iter') for edit in _run(f'{agent}.{name}')),
        *_run(f'{agent}.run_stream_events', calls=events),
        *_override(f'{agent}.override'),
        argument(f'{agent}.override', PASS_ON, beside='retries'),
    ]


DBOS = _durable('DBOSAgent', events=0, workflows=('wrapped_run_workflow', 'wrapped_run_sync_workflow'))
PREFECT = _durable('PrefectAgent', events=1)
TEMPORAL = _durable('TemporalAgent', events=1)

TOOLS: list[Edit] = [
    statement(
        '',
        'from ._deferred_tool_handler import DeferredToolHandler as DeferredToolHandler\n',
        after=m.SimpleStatementLine(body=[m.ImportFrom(relative=[m.Dot()], module=m.Name('_deferred'))]),
        what='`from ._deferred import ...`',
    ),
    exported('DeferredToolHandler', before='DeferredToolRequests'),
]
PACKAGE: list[Edit] = [
    imported('DeferredToolHandler', of=['.tools']),
    exported('DeferredToolHandler', before='DeferredToolRequests'),
]

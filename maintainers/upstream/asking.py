"""Edits that ask the handler during a run, and keep its questions from ending a stream."""

from __future__ import annotations

import libcst.matchers as m

from .insertions import expression, handler, method, nested, statement
from .keyword import NAME
from .places import Edit
from .signatures import argument

_HANDLER = f'self.tool_manager.{NAME}'


def _self(name: str, *names: str) -> m.Attribute:
    """Match a chain of attributes of `self`."""
    node = m.Attribute(m.Name('self'), m.Name(name))
    for each in names:
        node = m.Attribute(node, m.Name(each))
    return node


def _import(module: str, names: str) -> Edit:
    return statement(
        '',
        f'from ._{NAME} import {names}\n',
        after=m.SimpleStatementLine(body=[m.ImportFrom(relative=[m.Dot()], module=m.Name(module))]),
        what=f'`from .{module} import ...`',
    )


TOOL_MANAGER: list[Edit] = [
    _import('_deferred', f'DeferredToolHandler, ask_{NAME}'),
    statement(
        '',
        'from ._deferred_snapshot import ValidatedArgs\n',
        before=m.SimpleStatementLine(body=[m.ImportFrom(relative=[m.Dot()], module=m.Name(f'_{NAME}'))]),
        what=f'our import from `._{NAME}`',
    ),
    statement(
        'ToolManager',
        f'{NAME}: DeferredToolHandler[AgentDepsT] | None = None\n'
        '"""Resolves the deferred calls that no capability has resolved; it must resolve all of them."""\n'
        'validated_args: dict[str, ValidatedArgs] = field(default_factory=dict[str, ValidatedArgs])\n'
        '"""The validated arguments of this run step\'s calls by `tool_call_id`, for the handler to see."""\n',
        before=m.FunctionDef(name=m.Name('parallel_execution_mode')),
        what='method `parallel_execution_mode`',
    ),
    argument('ToolManager.for_run_step', f'{NAME}=self.{NAME}', beside='default_max_retries', of='self.__class__'),
    statement(
        'ToolManager._make_validation_success',
        'self._note_validated_args(call, tool, validated_args)\n',
        before=m.SimpleStatementLine(body=[m.Return()]),
        what='`return`',
    ),
    method(
        'ToolManager',
        'def _note_validated_args(\n'
        '    self, call: ToolCallPart, tool: ToolsetTool[AgentDepsT] | None, args: dict[str, Any] | None\n'
        ') -> None:\n'
        '    """Keep what the tool would be called with, for the deferred tool handler to see."""\n'
        f'    if self.{NAME} is not None and tool is not None and args is not None:\n'
        '        validated = ValidatedArgs(call, args, tool.tool_def.parameters_json_schema)\n'
        '        self.validated_args[call.tool_call_id] = validated\n',
        before='_make_validation_failure',
    ),
    handler(
        'ToolManager._raw_execute',
        'except (ApprovalRequired, CallDeferred):\n'
        '    # Hooks may have changed the arguments since they were validated.\n'
        '    self._note_validated_args(validated.call, validated.tool, validated.validated_args)\n'
        '    raise\n',
        of=m.Try(handlers=[m.ExceptHandler(type=m.Name('ToolFailed')), m.ExceptHandler(type=m.Name('ModelRetry'))]),
        what='`try` with an `except` for `ToolFailed` and one for `ModelRetry`',
    ),
    expression(
        'ToolManager.resolve_deferred_tool_calls',
        f'await ask_{NAME}(\n'
        f'    self.{NAME},\n'
        '    self.ctx,\n'
        '    requests,\n'
        '    answered=__,\n'
        '    validated=self.validated_args,\n'
        ')',
        of=m.IfExp(body=m.Call(func=m.Name('filter_deferred_results'))),
        what="filter on the capabilities' results",
    ),
]

TOOL_EXECUTION: list[Edit] = [
    _import('_deferred_capabilities', 'deferred_again_error'),
    statement(
        '_ToolCallProcessor._finalize_deferred',
        f'if self.final_result and {_HANDLER} is not None:\n'
        '    for event in self._skip_raised_deferrals():\n'
        '        yield event\n\n',
        before=m.If(test=m.BooleanOperation(right=_self('deferred_calls'))),
        what='`if` about `self.deferred_calls`',
    ),
    method(
        '_ToolCallProcessor',
        'def _skip_raised_deferrals(self) -> Iterator[_messages.HandleResponseEvent]:\n'
        '    """Record a \'not executed\' stub for each call whose tool deferred it beside a final result.\n'
        '\n'
        "        The handler is not asked about it any more, and a history with an open call can't take a new prompt.\n"
        '        Its `FunctionToolCallEvent` was emitted before it ran.\n'
        '        """\n'
        '    for call in [call for bucket in _DEFERRED_BUCKETS for call in self.deferred_calls[bucket]]:\n'
        '        part = _messages.ToolReturnPart(\n'
        '            tool_name=call.tool_name,\n'
        '            content=_TOOL_SKIPPED_FINAL_ALREADY_PROCESSED,\n'
        '            tool_call_id=call.tool_call_id,\n'
        '        )\n'
        '        self.output_parts.append(part)\n'
        '        yield _messages.FunctionToolResultEvent(part)\n',
        before='_collect_deferred_calls',
    ),
    nested(
        '_ToolCallProcessor._resolve_deferred_calls',
        f'if {_HANDLER} is not None:\n'
        '    # It has resolved every call, so what is left has deferred again.\n'
        '    raise deferred_again_error(deferred_tool_requests)\n',
        block=m.If(test=m.UnaryOperation(m.Not(), _self('ctx', 'deps', 'output_schema', 'allows_deferred_tools'))),
        what='`if` without deferred tools in the output schema',
    ),
]

GRAPH: list[Edit] = [
    argument(
        '_prepare_request_parameters',
        f'deferred_calls_end_run=ctx.deps.tool_manager.{NAME} is None',
        beside='allow_image_output',
        of='models.ModelRequestParameters',
    ),
]

MODELS: list[Edit] = [
    statement(
        'ModelRequestParameters',
        'deferred_calls_end_run: Annotated[bool, Field(exclude_if=lambda ends: ends)] = True\n'
        '"""Whether a call to a tool that requires approval or is external ends the run, as `DeferredToolRequests`.\n'
        '\n'
        f'    False with a `{NAME}`, which resolves the call during the run: no stream ends with it.\n'
        '    """\n',
        after=m.SimpleStatementLine(body=[m.AnnAssign(target=m.Name('allow_image_output'))]),
        what='field `allow_image_output`',
    ),
    expression(
        '_get_final_result_event',
        '__ and params.deferred_calls_end_run',
        of=m.Attribute(m.Name('tool_def'), m.Name('defer')),
        what='`tool_def.defer`',
    ),
]

RESULT: list[Edit] = [
    statement(
        '_get_deferred_tool_requests',
        f'if tool_manager.{NAME} is not None:\n'
        '    # They are resolved during the run, or skipped beside a final result.\n'
        '    return None\n\n',
        before=m.SimpleStatementLine(body=[m.AnnAssign(target=m.Name('approvals'))]),
        what='declaration of `approvals`',
    ),
]

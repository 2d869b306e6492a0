"""Do in process what a Temporal server and a worker do for one workflow, which the SDK's own sandbox runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import temporalio.activity
import temporalio.api.common.v1
import temporalio.bridge.proto.workflow_activation as activation
import temporalio.workflow
from pydantic_ai.durable_exec.temporal import AgentPlugin, PydanticAIPayloadConverter, PydanticAIPlugin
from temporalio.bridge.proto import activity_result
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.converter import DataConverter
from temporalio.testing import ActivityEnvironment
from temporalio.worker import WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

LIMIT = 20
"""How many activations a workflow gets: one that waits for nothing that a server knows would wait for ever."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class WorkflowFailedError(Exception):
    """The workflow has failed, with the message of its failure."""


async def execute(workflow: type, agent: Any, *passed: str) -> Any:
    """Run `workflow`, and the activities it schedules, to its end; its sandbox passes the modules `passed` through.

    Raises:
        WorkflowFailedError: It failed, or its task did.
        TimeoutError: It waits for what never comes.
    """
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*passed)
    config: Any = {
        'workflow_runner': SandboxedWorkflowRunner(restrictions=restrictions),
        'workflows': [workflow],
        'activities': [],
    }
    for plugin in (PydanticAIPlugin(), AgentPlugin(agent)):
        config = plugin.configure_worker(config)
    activities = [temporalio.activity._Definition.must_from_callable(each) for each in config['activities']]
    by_name = {each.name: each for each in activities}
    converter = DataConverter(payload_converter_class=PydanticAIPayloadConverter)
    instance = config['workflow_runner'].create_instance(_details(workflow, converter, config))
    job = activation.WorkflowActivationJob()
    job.initialize_workflow.workflow_type = workflow.__name__
    jobs = [job]
    for _ in range(LIMIT):
        act = activation.WorkflowActivation(run_id='run', jobs=jobs)
        act.timestamp.FromDatetime(NOW)
        # As a worker: in a thread, where no event loop runs.
        completion = await asyncio.get_running_loop().run_in_executor(None, instance.activate, act)
        if completion.HasField('failed'):
            raise WorkflowFailedError(completion.failed.failure.message)
        jobs = []
        for command in completion.successful.commands:
            match command.WhichOneof('variant'):
                case 'complete_workflow_execution':
                    [output] = converter.payload_converter.from_payloads([command.complete_workflow_execution.result])
                    return output
                case 'fail_workflow_execution':
                    raise WorkflowFailedError(command.fail_workflow_execution.failure.message)
                case 'schedule_activity':
                    jobs.append(await _resolve(command.schedule_activity, by_name, converter))
                case 'set_patch_marker':  # for a later replay
                    pass
                case other:
                    raise AssertionError(f'no server here for {other}')
    raise TimeoutError(f'the workflow did not end in {LIMIT} activations')


def _details(workflow: type, converter: DataConverter, config: Any) -> WorkflowInstanceDetails:
    definition = temporalio.workflow._Definition.must_from_class(workflow)
    info = temporalio.workflow.Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id='run',
        headers={},
        namespace='default',
        original_execution_run_id='run',
        parent=None,
        root=None,
        priority=Priority.default,
        raw_memo={},
        retry_policy=None,
        run_id='run',
        run_timeout=None,
        search_attributes={},
        start_time=NOW,
        task_queue='queue',
        task_timeout=timedelta(seconds=10),
        typed_search_attributes=TypedSearchAttributes.empty,
        workflow_id='workflow',
        workflow_start_time=NOW,
        workflow_type=workflow.__name__,
    )
    return WorkflowInstanceDetails(
        payload_converter_factory=PydanticAIPayloadConverter,
        failure_converter_class=converter.failure_converter_class,
        interceptor_classes=[],
        defn=definition,
        info=info,
        randomness_seed=1,
        extern_functions={},
        disable_eager_activity_execution=True,
        worker_level_failure_exception_types=config['workflow_failure_exception_types'],
        patch_activation_callback=None,
        last_completion_result=temporalio.api.common.v1.Payloads(),
        last_failure=None,
    )


async def _resolve(scheduled: Any, by_name: dict[str, Any], converter: DataConverter) -> Any:
    definition = by_name[scheduled.activity_type]
    args = converter.payload_converter.from_payloads(scheduled.arguments, definition.arg_types)
    result = await ActivityEnvironment().run(definition.fn, *args)
    [payload] = converter.payload_converter.to_payloads([result])
    job = activation.WorkflowActivationJob()
    job.resolve_activity.seq = scheduled.seq
    job.resolve_activity.result.CopyFrom(
        activity_result.ActivityResolution(completed=activity_result.Success(result=payload))
    )
    return job

"""Run agents durably: a run that waits for an approver needs no process, and any worker can continue it."""

from .agent import DurableAgent, DurableRun, DurableRunFailed

__all__ = ('DurableAgent', 'DurableRun', 'DurableRunFailed')

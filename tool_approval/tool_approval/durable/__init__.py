"""Store durable runs, and execute each of their approved calls at most once."""

from .ledger import Done, Ledger, Reconcile, Reconciled, UnknownCall
from .rows import MOVES, ExecutionRow, ExecutionState, RunRow, RunStatus
from .store import DurableStore, open_store

__all__ = (
    'MOVES',
    'Done',
    'DurableStore',
    'ExecutionRow',
    'ExecutionState',
    'Ledger',
    'Reconcile',
    'Reconciled',
    'RunRow',
    'RunStatus',
    'UnknownCall',
    'open_store',
)

"""Store durable runs, and execute each of their approved calls at most once."""

from .ledger import Done, Ledger, Reconcile, Reconciled, UnknownCall
from .store import MOVES, DurableStore, ExecutionRow, ExecutionState, RunRow, RunStatus, open_store

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

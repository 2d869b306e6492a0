"""Runs that survive: a store that keeps them, and a ledger of what was executed."""

from .store import MOVES, DurableStore, ExecutionRow, ExecutionState, RunRow, RunStatus, open_store

__all__ = ('MOVES', 'DurableStore', 'ExecutionRow', 'ExecutionState', 'RunRow', 'RunStatus', 'open_store')

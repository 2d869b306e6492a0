"""List the peers and their environments."""

from __future__ import annotations

from dataclasses import dataclass

HOST = 'pydantic-ai-slim==2.68.0'
"""Release of Pydantic AI for all peers that run on it."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment and its installations."""

    name: str
    """Name of the folder."""
    installs: tuple[tuple[str, ...], ...]
    """Arguments of each call of `pip install`. Paths are relative to the repository."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way to have calls approved, and the worker that uses it."""

    name: str
    """Name in the tables."""
    environment: Environment
    """Environment in which the worker runs."""
    worker: str
    """Name of the module below `maintainers.peers.workers`."""
    arguments: tuple[str, ...] = ()
    """Arguments of the worker."""


_OURS = Environment(
    name='ours',
    installs=((HOST, '--editable', './pydantic_ai_slim', '--editable', './tool_approval[pydantic-ai]'),),
)
_HOST = Environment(name='pydantic-ai', installs=((HOST,),))
# It requires the full `pydantic-ai`, whose newest release is older than that of the slim one. With its own dependencies
# it would run on another version of the host.
_BLOCKING = Environment(
    name='blocking-approval', installs=((HOST,), ('--no-deps', 'pydantic-ai-blocking-approval==0.9.0'))
)
_LANGCHAIN = Environment(
    name='langchain', installs=(('langchain==1.4.7', 'langgraph==1.2.22', 'langchain-core==1.7.2'),)
)
_OPENAI = Environment(name='openai-agents', installs=(('openai-agents==0.24.0',),))
_INSPECT = Environment(name='inspect', installs=(('inspect-ai==0.3.285',),))

REFERENCE = 'ours, async handler'
"""Peer that the ratios compare with."""

CONTROL = 'ours, async handler (again)'
"""The reference in a second process, which shows the noise."""

PEERS = (
    Peer(name=REFERENCE, environment=_OURS, worker='ours', arguments=('async',)),
    Peer(name=CONTROL, environment=_OURS, worker='ours', arguments=('async',)),
    Peer(name='ours, sync handler', environment=_OURS, worker='ours', arguments=('sync',)),
    Peer(name='ours, whole layer', environment=_OURS, worker='ours', arguments=('layer',)),
    Peer(name='ours, whole layer with audit log', environment=_OURS, worker='ours', arguments=('layer-audit',)),
    Peer(name='HandleDeferredToolCalls', environment=_HOST, worker='host', arguments=('capability',)),
    Peer(name='stop and resume', environment=_HOST, worker='host', arguments=('stop-resume',)),
    Peer(name='pydantic-ai-blocking-approval', environment=_BLOCKING, worker='blocking'),
    Peer(name='LangChain HumanInTheLoopMiddleware', environment=_LANGCHAIN, worker='langchain_hitl'),
    Peer(name='OpenAI Agents SDK', environment=_OPENAI, worker='openai_agents'),
    Peer(name='Inspect AI approver', environment=_INSPECT, worker='inspect_approvers'),
)
"""All peers, in the order of the tables."""

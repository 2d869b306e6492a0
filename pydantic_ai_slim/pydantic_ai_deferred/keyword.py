"""Add the keyword `deferred_tool_handler` to the host's methods. The keyword only adds a capability."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from pydantic_ai import DeferredToolRequests
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError

from .capability import HANDLER_ID, DeferredToolHandler
from .nesting import offered_capability

MethodT = TypeVar('MethodT', bound=Callable[..., Any])

# A tuple, compared by identity: agents are not hashable.
_overrides: ContextVar[tuple[tuple[object, Any], ...]] = ContextVar('pydantic_ai_deferred_overrides', default=())


def as_capability(handler: Any) -> AbstractCapability[Any]:
    """Return the capability for a handler: a capability as it is, a function as a `DeferredToolHandler`.

    Raises:
        UserError: The handler cannot be called.
    """
    return cast('Any', handler) if isinstance(handler, AbstractCapability) else DeferredToolHandler(handler)


def with_handler(keywords: dict[str, Any], handler: Any) -> dict[str, Any]:
    """Return keyword arguments for the host, in which `handler` is the only handler among the capabilities.

    Raises:
        UserError: The handler cannot be called.
    """
    if handler is None:
        return keywords
    others = [each for each in keywords.get('capabilities') or () if getattr(each, 'id', None) != HANDLER_ID]
    return {**keywords, 'capabilities': [*others, as_capability(handler)]}


def taking_handler(method: MethodT) -> MethodT:
    """Return a run variant or the constructor of the host with the keyword `deferred_tool_handler`."""

    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        keywords = _with_name(self, keywords, inspect.currentframe())
        with _ending_tasks():
            return method(self, *args, **with_handler(keywords, deferred_tool_handler))

    async def coroutine(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        keywords = _with_name(self, keywords, inspect.currentframe())
        return await method(self, *args, **with_handler(keywords, deferred_tool_handler))

    return _like(method, coroutine if inspect.iscoroutinefunction(method) else variant)


def constructing(method: MethodT) -> MethodT:
    """Return a method of the host that makes an agent, with the keyword."""

    def construct(owner: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        return method(owner, *args, **with_handler(keywords, deferred_tool_handler))

    return _like(method, construct)


def starting(method: MethodT) -> MethodT:
    """Return the host's `iter`, which all run variants call, with the handler of the run.

    An active override comes first, then the run's handler and the agent's, then the handler that a nested run inherits.
    """

    def variant(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        keywords = _with_name(self, keywords, inspect.currentframe())
        overrides = (handler for agent, handler in reversed(_overrides.get()) if agent is self)
        handler = next(overrides, deferred_tool_handler)
        if (offered := offered_capability()) is not None and _inherits(self, keywords, handler, offered):
            handler = offered
        return method(self, *args, **with_handler(keywords, handler))

    return _like(method, variant)


def overriding(method: MethodT) -> MethodT:
    """Return the host's `override` with the keyword."""

    @contextmanager
    def override(self: Any, *, deferred_tool_handler: Any = None, **keywords: Any) -> Generator[None]:
        with method(self, **keywords), _overridden(self, deferred_tool_handler):
            yield

    return _like(method, override)


def chatting(method: MethodT) -> MethodT:
    """Return the host's `to_cli` or `to_cli_sync` with the keyword. Each turn of the chat is a run."""

    def chat(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        with _overridden(self, deferred_tool_handler):
            return method(self, *args, **keywords)

    async def coroutine(self: Any, *args: Any, deferred_tool_handler: Any = None, **keywords: Any) -> Any:
        with _overridden(self, deferred_tool_handler):
            return await method(self, *args, **keywords)

    return _like(method, coroutine if inspect.iscoroutinefunction(method) else chat)


@contextmanager
def _ending_tasks() -> Generator[None]:
    # A `SystemExit` or `KeyboardInterrupt` stops the event loop of a sync run variant at once. The run's tasks would
    # stay pending, and with them the threads that ran its sync tools, which the interpreter joins at exit.
    loop = _current_loop()
    before = set[asyncio.Task[Any]]() if loop is None else asyncio.all_tasks(loop)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        loop = _current_loop()
        if loop is not None and not loop.is_running() and not loop.is_closed():
            _end(asyncio.all_tasks(loop) - before, loop)
        raise


def _end(tasks: set[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop) -> None:
    for task in tasks:
        task.cancel()
    # The interrupt leaves the loop again for each task that waited for an interrupted one, and the callbacks that end
    # the threads need a turn of their own. The tries are limited, so that a person can interrupt a task that does not
    # end.
    for _ in range(len(tasks) + 1):
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            loop.run_until_complete(_ended(tasks))
            return


def _current_loop() -> asyncio.AbstractEventLoop | None:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)  # before 3.14 a missing loop is created
        try:
            return asyncio.get_event_loop()
        except RuntimeError:
            return None


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.gather(asyncio.sleep(0), *(task for task in tasks if not task.done()), return_exceptions=True)


@contextmanager
def _overridden(agent: Any, handler: Any) -> Generator[None]:
    while isinstance(agent, WrapperAgent):
        agent = cast('Any', agent).wrapped
    handlers = () if handler is None else ((agent, as_capability(handler)),)
    token = _overrides.set((*_overrides.get(), *handlers))
    try:
        yield
    finally:
        _overrides.reset(token)


def _inherits(agent: Any, keywords: dict[str, Any], handler: Any, offered: AbstractCapability[Any]) -> bool:
    # Not if the run has a handler of its own, or its caller takes deferred calls as the output. A capability that also
    # guards the tools is inherited in the latter case too, and in the former the run is refused.
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    given = [*found, *(keywords.get('capabilities') or ()), *([] if handler is None else [as_capability(handler)])]
    own = [cast('DeferredToolHandler[Any]', each) for each in given if isinstance(each, DeferredToolHandler)]
    if isinstance(offered, DeferredToolHandler) and offered.is_guard:
        if own and not any(each.is_guard for each in own):
            kind = type(offered).__name__
            raise UserError(
                f'An agent inside a tool of a run with `{kind}` has a handler of its own, which would answer its calls '
                f'without their guard: remove it, give that agent `{kind}`, or set `inherit=False` on the outer one.'
            )
        return not own
    output_type = keywords.get('output_type')
    return not own and not allows_deferred(agent.output_type if output_type is None else output_type)


def allows_deferred(output_type: object) -> bool:
    """Return whether a run with this output type may end with deferred calls."""
    if output_type is DeferredToolRequests:
        return True
    if isinstance(output_type, list | tuple):
        return any(map(allows_deferred, cast('Sequence[object]', output_type)))
    if get_origin(output_type) in (Union, types.UnionType):
        return any(map(allows_deferred, get_args(output_type)))
    alias = getattr(output_type, '__value__', None)  # `type X = ...`
    return alias is not None and allows_deferred(alias)


def _like(method: MethodT, made: Callable[..., Any]) -> MethodT:
    functools.update_wrapper(made, method)
    signature = inspect.signature(method)
    *others, last = signature.parameters.values()
    keyword = inspect.Parameter('deferred_tool_handler', inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*others, keyword, last] if last.kind is inspect.Parameter.VAR_KEYWORD else [*others, last, keyword]
    cast('Any', made).__signature__ = signature.replace(parameters=parameters)
    return cast('MethodT', made)


def _with_name(agent: Any, keywords: dict[str, Any], frame: FrameType | None) -> dict[str, Any]:
    # The host names an agent after the variable in the frame that calls the host. That frame belongs to our method,
    # where the variable is `self`, so the frame that called our method is used here.
    caller = frame.f_back if frame is not None else None
    if keywords.get('infer_name', True) and agent.name is None and caller is not None:
        is_hosts = str(caller.f_globals.get('__name__')).startswith('pydantic_ai.')  # it calls every agent `agent`
        variables = () if is_hosts else (*caller.f_locals.items(), *caller.f_globals.items())
        agent.name = next((name for name, value in variables if value is agent and name != 'self'), None)
    return {**keywords, 'infer_name': False}

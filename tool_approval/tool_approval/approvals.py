"""One object that has everything about approval: rules, memory, UI, log and key. It is made once and passed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

from .audit import JsonlAuditSink, load_key
from .core.calls import ExecutionLedger
from .core.config import Default, ToolRule
from .core.controller import VALID_FOR, ApprovalController
from .core.decision import ApprovalDecision, ApprovalMode
from .core.errors import ApprovalConfigError
from .core.execute import execute_tool
from .core.gate import Gate
from .core.memory import ApprovalMemory
from .core.policy import ApprovalPolicy
from .core.protocols import ApprovalUI, AuditSink, Presenter
from .core.request import ApprovalRequest
from .storage import FileApprovalStore
from .storage.private_file import default_path

if TYPE_CHECKING:
    from .integrations.langchain import ApprovalMiddleware, ApprovalToolWrapper
    from .settings import LoadedSettings

Rules: TypeAlias = (
    str | os.PathLike[str] | Mapping[str, ToolRule | Mapping[str, Any]] | ApprovalPolicy | ApprovalController | None
)
"""Path of a settings file, such as `approvals.yaml`; rules by tool name or glob; a policy; or a controller, which has
its own UI, memory, log, mode, timeout, presenters and key. `None` means no rules."""

Path: TypeAlias = str | os.PathLike[str]


class Parts(TypedDict, total=False):
    """Keywords of `Approvals`. All of them are optional."""

    ui: ApprovalUI | None
    """UI that asks the approver. Without a UI, calls that need an approver are denied."""
    remember: Path | ApprovalMemory | None
    """Folder of the project for which `always` approvals are stored in the user's state folder, or a memory. With
    `None`, approvals are remembered until the process ends."""
    log: Path | AuditSink | None
    """File of the audit log, whose entries are chained by a key in the user's state folder, or an audit sink."""
    mode: ApprovalMode | None
    """`interactive`, `approve_all` or `strict`. `None` uses the mode of the settings file, else `interactive`."""
    default: Default
    """Whether tools without a rule and a check need approval: `required`, unless given, or `none`."""
    timeout: float | None
    """Seconds allowed to the approver. After that, the call is denied."""
    presenters: Mapping[str, Presenter] | None
    """Functions, by tool name, that make the content to show."""
    tells_changes: bool
    """Whether the model of an agent is informed of arguments that an approver changed; true unless given. `execute`
    adds nothing to the result of the function."""
    ledger: ExecutionLedger | None
    """Ledger that executes each call at most once."""
    valid_for: timedelta | None
    """Time between the decision on a call and its execution, after which the call no longer runs. One day, unless
    given; `None` sets no limit."""
    log_unasked: bool
    """Whether the log has a line for each call that runs unasked. If not given, the settings file decides
    (`audit: {unasked: false}`); otherwise true."""
    key: bytes | None
    """Secret key that binds approvals to calls. Needed if runs stop in one process and resume in another."""


_OF_CONTROLLER = ('ui', 'remember', 'log', 'mode', 'timeout', 'presenters', 'key', 'valid_for', 'log_unasked')


class Approvals:
    """Rules, memory, UI, log and key for any number of agents, tools and runs.

    For Pydantic AI, use `tool_approval.integrations.pydantic_ai.Approvals`, which is also a capability.
    """

    def __init__(self, rules: Rules = None, **parts: Unpack[Parts]) -> None:
        """Combine the parts.

        Args:
            rules: The rules; see `Rules`. A settings file that is named here is trusted.
            **parts: See `Parts`.

        Raises:
            ApprovalConfigError: The rules or the settings file are invalid.
            AuditError: The log or its key cannot be used.
            StoreError: The remembered approvals cannot be used.
            TypeError: A part is of the wrong type, or is given beside a controller.
            ValueError: `default` or `mode` is unknown, or the timeout is not positive.
        """
        if unknown := sorted(parts.keys() - Parts.__annotations__.keys()):
            raise TypeError(f'`Approvals` has no {" and no ".join(f"`{each}`" for each in unknown)}')
        if isinstance(rules, ApprovalController):
            if both := [name for name in _OF_CONTROLLER if parts.get(name) is not None]:
                raise TypeError(f'the controller already has its own {" and ".join(f"`{each}`" for each in both)}')
            self._controller = rules
        else:
            self._controller = _controller(rules, parts)
        self.default: Default = parts.get('default', 'required')
        """Whether tools without a rule and a check need approval."""
        self.tells_changes = parts.get('tells_changes', True)
        """Whether the model is informed of arguments that an approver changed."""
        self._ledger = parts.get('ledger')
        self._original = self
        _ = self.gate  # checks `default`

    @property
    def controller(self) -> ApprovalController:
        """The controller, or inside `testing` the controller of the test."""
        test = self._test()
        return self._controller if test is None else test.controller

    @property
    def memory(self) -> ApprovalMemory:
        """The remembered approvals, to list and to revoke; inside `testing`, those of the test."""
        return self.controller.memory

    @property
    def ledger(self) -> ExecutionLedger | None:
        """Ledger that executes each call at most once. Tests have none."""
        return self._ledger if self._test() is None else None

    @property
    def gate(self) -> Gate:
        """Gate that every use of this object passes its calls through."""
        return Gate(self.controller, default=self.default, tells_changes=self.tells_changes)

    async def execute(
        self,
        function: Callable[..., Any],
        args: Mapping[str, Any],
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run `function(**args)` if it is allowed, in code that uses no agent framework.

        Args:
            function: A function or other callable, with or without an approval check.
            args: Argument values by parameter name.
            name: Name by which the model calls the function; `None` uses `function.__name__`.
            metadata: Facts about the call; see `context_metadata` of `execute_tool`.

        Returns:
            The result, as `execute_tool` returns it. It does not say whether an approver changed the arguments.

        Raises:
            ApprovalBlocked: Policy blocks the call. Nothing has run.
            ApprovalDenied: The call was denied, or it changed after approval. Nothing has run.
            TypeError: The function has no name, and none is given. Nothing has run.
            Exception: Any other exception that `execute_tool` raises, or the function.
        """
        called = name or getattr(function, '__name__', None)
        if called is None:
            raise TypeError(f'a {type(function).__name__} has no name; give `name=`, as in the rules')
        return await execute_tool(
            function, called, args, self.controller, metadata, default=self.default, ledger=self.ledger
        )

    def middleware(self, *, caller: str | None = None) -> ApprovalMiddleware:
        """Return a LangChain middleware that decides with this object. `caller` names the agent for approvers."""
        from .integrations.langchain import ApprovalMiddleware

        return ApprovalMiddleware(
            self.controller, default=self.default, caller=caller, tells_changes=self.tells_changes
        )

    def wrap(self, tool: Any, *, caller: str | None = None) -> ApprovalToolWrapper:
        """Return a LangChain tool whose calls are decided with this object."""
        from .integrations.langchain import ApprovalToolWrapper

        return ApprovalToolWrapper(tool, self.controller, self.default, caller=caller, tells_changes=self.tells_changes)

    @contextmanager
    def testing(self, ui: ApprovalUI) -> Generator[list[Mapping[str, Any]]]:
        """Ask `ui` instead, in the runs that start inside the block. Other runs are not affected.

        The rules and the mode stay. Memory, key and log are new ones, in this process alone: nothing of the user's is
        read or written. A run that outlives the block is denied everything that needs approval.

        Args:
            ui: UI of the test, such as `ScriptedUI([True, 'no'])`.

        Yields:
            The entries of the test's log, which grows as calls are decided and run.
        """
        log: list[Mapping[str, Any]] = []
        test = _Test(self._original, self._controller, ui, log)
        token = _tests.set((*_tests.get(), test))
        try:
            yield log
        finally:
            _tests.reset(token)
            test.end()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Refuse to be called as the handler or capability of a framework, which has a class of its own.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            'these `Approvals` are for code without a framework: for Pydantic AI, import `Approvals` from '
            '`tool_approval.integrations.pydantic_ai`'
        )

    def _test(self) -> _Test | None:
        tests = _tests.get()
        return next((each for each in reversed(tests) if each.of is self._original), None) if tests else None


class _Test:
    def __init__(
        self, of: Approvals, controller: ApprovalController, ui: ApprovalUI, log: list[Mapping[str, Any]]
    ) -> None:
        self.of = of
        self._real = controller
        self.controller = controller.for_test(ui, _ListSink(log))

    def end(self) -> None:
        self.controller = self._real.for_test(_Ended(), None)


_tests: ContextVar[tuple[_Test, ...]] = ContextVar('tool_approval_tests', default=())


class _ListSink:
    def __init__(self, entries: list[Mapping[str, Any]]) -> None:
        self._entries = entries

    def record(self, entry: Mapping[str, Any]) -> None:
        self._entries.append(entry)


class _Ended:
    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return ApprovalDecision(approved=False, note='The test of this run has ended, so the call was denied.')


def _controller(rules: Any, parts: Parts) -> ApprovalController:
    policy, mode, loaded, logs_unasked = _policy(rules)
    memory, ui, presenters = _memory(parts.get('remember')), parts.get('ui'), parts.get('presenters')
    # A UI that two `Approvals` share would show the approvals that the other one remembers.
    adopted: Callable[..., ApprovalUI] | None = getattr(ui, 'adopted', None)
    return ApprovalController(
        parts.get('mode') or mode,
        policy=policy,
        ui=ui if adopted is None else adopted(memory, presenters or {}),
        memory=memory,
        audit=_sink(parts.get('log'), loaded),
        presenters=presenters,
        timeout=parts.get('timeout'),
        key=parts.get('key'),
        valid_for=parts.get('valid_for', VALID_FOR),
        log_unasked=parts.get('log_unasked', logs_unasked),
    )


def _policy(rules: Any) -> tuple[ApprovalPolicy, ApprovalMode, LoadedSettings | None, bool]:
    if isinstance(rules, ApprovalPolicy):
        return rules, 'interactive', None, True
    if rules is None or isinstance(rules, Mapping):
        return ApprovalPolicy(cast('Any', rules)), 'interactive', None, True
    if not isinstance(rules, str | os.PathLike):
        raise TypeError(
            '`rules` must be the path of a settings file, a mapping of rules, an `ApprovalPolicy` or an '
            f'`ApprovalController`, not {type(rules).__name__}'
        )
    path = cast('Path', rules)
    if '\n' in str(path):
        raise ApprovalConfigError('`rules` is a text of several lines; pass it to `ApprovalPolicy.from_yaml`')
    from .settings import effective, load_settings

    loaded = load_settings(path, named=True)
    settings = effective(loaded)
    policy = ApprovalPolicy.from_config(settings.policy_config, source=settings.policy.source, line_of=loaded.line_of)
    return policy, settings.mode, loaded, settings.audit.unasked


def _memory(remember: Any) -> ApprovalMemory:
    if remember is None:
        return ApprovalMemory()
    if isinstance(remember, ApprovalMemory):
        return remember
    if not isinstance(remember, str | os.PathLike):
        raise TypeError(f'`remember` must be a folder or an `ApprovalMemory`, not {type(remember).__name__}')
    folder = cast('Path', remember)
    if not os.path.isdir(folder):
        raise TypeError(f'`remember` must be the folder of the project, and {os.fspath(folder)!r} is not a folder')
    return ApprovalMemory(FileApprovalStore(folder))


def _sink(log: Any, loaded: LoadedSettings | None) -> AuditSink | None:
    if isinstance(log, str | os.PathLike):
        log = JsonlAuditSink(cast('Path', log), key=load_key(default_path().with_name('keys') / 'audit.key'))
    elif log is not None and not callable(getattr(log, 'record', None)):
        raise TypeError(f'`log` must be a path, or an audit sink with a method `record`, not {type(log).__name__}')
    if log is None or loaded is None:
        return log
    from .settings import SettingsAudit

    return SettingsAudit(log, loaded)

"""The shell tool, which decides whether a command needs approval, and runs the command."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tool_approval.core.errors import ApprovalBlocked, printable
from tool_approval.core.presentation import BRIEF_ACCESS, EXTRA_ACCESS, ApprovalPresentation
from tool_approval.core.request import ApprovalContext, ApprovalRequest, RememberOption
from tool_approval.core.tool_checks import CallBlocked
from tool_approval.os_sandbox.access import ExtraAccess

from .config import ShellConfig
from .environment import clean_environment
from .explanation import Explanation
from .judge import BY_DEFAULT, ShellJudge
from .names import guarded_name
from .paths import ShellRoot
from .rules import check_rules

if TYPE_CHECKING:
    from .running import Limits, ShellResult

_SHELLS: Final = ('/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash')
"""Paths of bash. The paths are fixed, because `PATH` may have been changed."""
_MAX_OUTPUT_BYTES: Final = 65_536
"""Maximum number of bytes of an output, about as much as a model can use."""
BEYOND: Final = 'it needs more access than a command has without approval'
"""Why the user is asked about a command that no rule asks about."""
OUTSIDE_REASON: Final = 'it runs outside of the sandbox'
"""Why the user is asked about a command that does not run in the sandbox."""
_AGAIN: Final = 'the command may already have run and had effects'
_LONGEST_DESCRIPTION: Final = 160
"""Maximum number of characters of the command in the one-line description. The presentation shows all of them."""


class ShellTool:
    """Runs bash commands in one working directory, subject to rules. Several tasks may share the object.

    The class implements `ApprovalAware`. To run a command, `execute_tool` calls the object with `command=...`.
    """

    def __init__(
        self,
        config: ShellConfig | Mapping[str, Any] | None = None,
        *,
        cwd: str | Path = '.',
        roots: Mapping[str, ShellRoot] | None = None,
        is_writable: Callable[[str], bool] = lambda path: False,
        needs_write: Callable[[str], bool] | None = None,
        wrap: Callable[[list[str]], list[str]] | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = _MAX_OUTPUT_BYTES,
    ) -> None:
        """Compile the rules.

        Args:
            config: The configuration; by default, every command needs approval.
            cwd: Directory that commands run in.
            roots: Named roots for `sandbox_paths`, each an absolute path or a function that checks if a path is inside.
            is_writable: Function that returns whether a redirection may write to an absolute path without approval.
            needs_write: If an OS sandbox confines commands, a function that returns whether a command can write to an
                absolute path only with the extra access `write`. Commands that no rule names then run without approval
                if `config.default` allows it, because the OS sandbox holds them.
            wrap: Function that adds an OS sandbox. The function takes the program with its arguments, and returns the
                program and arguments to run instead.
            env: Environment to copy variables from, by default that of this process. Variables are left
                out if they may contain secrets or change which code runs.
            max_output_bytes: Maximum bytes to keep from each output, half from the beginning and half from the end.

        Raises:
            ApprovalConfigError: A rule names a root that does not exist, or an example contradicts its rule.
            MissingExtraError: A rule has examples, which need tree-sitter, but tree-sitter is not installed.
            ValidationError: The configuration is invalid.
        """
        self.config = config if isinstance(config, ShellConfig) else ShellConfig.model_validate(config or {})
        self.cwd = os.path.realpath(cwd)
        check_rules(self.config, cwd=self.cwd, roots=roots)
        self._judge = ShellJudge(
            self.config, cwd=self.cwd, roots=roots, is_writable=is_writable, needs_write=needs_write
        )
        self._wrap = wrap
        self._env = clean_environment(os.environ if env is None else env, names=self.config.environment)
        self._max_output_bytes = max_output_bytes
        self.begun: set[str] = set()
        """Commands that have been run, in whatever way they ended. Add those that ran earlier, in another process: a
        question about such a command with extra access says that it may already have had effects."""
        self.on_output: Callable[[int, bytes], None] | None = None
        """Function that gets all output of commands as it comes: 1 for standard output or 2 for standard error, and the
        bytes. It must not raise."""

    def explain(self, command: str) -> Explanation:
        """Return the decision on a command, with the deciding rule and the reason for each part.

        Raises:
            MissingExtraError: tree-sitter is not installed.
        """
        return self._judge.explain(command)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Return the request for approval, or `None` if the command may run without approval.

        Raises:
            CallBlocked: The command is blocked; a subclass of `PermissionError`.
            PermissionError: The command is not a string.
            MissingExtraError: tree-sitter is not installed.
        """
        command: object = ctx.args.get('command')
        if not isinstance(command, str):
            raise PermissionError('`command` must be a string')
        explanation = self.explain(command)
        if explanation.decision == 'block':
            raise CallBlocked(_refusal(explanation), payload={'command': command})
        extra = self.extra_access(explanation, ctx.args)
        # A command without approval gets no extra access.
        if explanation.decision == 'allow' and not extra:
            return None
        return self._request(ctx, explanation, extra)

    def extra_access(self, explanation: Explanation, args: Mapping[str, Any]) -> ExtraAccess:
        """Return the extra access for an approved command. Without an OS sandbox, the result is always empty.

        Args:
            explanation: The decision on the command, with the access that the command needs.
            args: The arguments of the call.

        Raises:
            PermissionError: The argument `access` is not empty.
        """
        if args.get('access'):
            raise PermissionError('`access` is not available: no OS sandbox confines commands here.')
        return ExtraAccess()

    def covers_more_than_one_call(self, extra: ExtraAccess) -> bool:
        """Return whether an approval with this access may be remembered for other calls of the same program.

        Whether the network or an environment is needed depends on more than the program.
        """
        return not (extra.network or extra.writes)

    def can_be_remembered(self, explanation: Explanation, extra: ExtraAccess) -> bool:
        """Return whether an approval with this access may be remembered, if only for exactly this command."""
        return True

    def defined_by(self, explanation: Explanation, extra: ExtraAccess) -> Mapping[str, str]:
        """Map each known file that says what the command runs to a digest of its content.

        A remembered approval covers the command only while none of them changes, appears or disappears.

        Attack: an approval of any `make test` covers what the agent has since written into the `Makefile`
        (`test_a_remembered_target_covers_no_changed_definition`). Files that the `Makefile` includes are not noticed.
        """
        words = explanation.remember or ('',)
        names = _MAKEFILES if guarded_name(words[0]) in ('make', 'gmake', 'remake') else ()
        paths = {name: os.path.join(self.cwd, name) for name in names}
        return {name: digest_of(path) for name, path in paths.items() if os.path.isfile(path)}

    def _request(self, ctx: ApprovalContext, explanation: Explanation, extra: ExtraAccess) -> ApprovalRequest:
        command, asked = explanation.command, ctx.args.get('access')
        lines = extra.describe(self.cwd)
        bound_to = {'cwd': self.cwd, **({EXTRA_ACCESS: extra.as_json()} if extra else {})}
        options: tuple[RememberOption, ...] = ()
        defined = self.defined_by(explanation, extra)
        definitions = {'defined_by': defined} if defined else {}
        if explanation.remember is not None and self.covers_more_than_one_call(extra):
            words = ' '.join(explanation.remember)
            included = f', {"; ".join(lines)} included,' if extra else ''
            label = f'any simple `{words}` command{included} in this directory, with safe arguments and no path outside'
            label += f', until {" or ".join(defined)} changes' if defined else ''
            payload = {'program': list(explanation.remember), **bound_to, **definitions}
            options = (RememberOption(kind='sub-command', label=label, payload=payload, brief=words),)
        reasons = [_why(explanation) if explanation.decision == 'ask' else BEYOND]
        asking = [part.reason for part in explanation.parts if part.decision == 'ask']
        is_usual = bool(asking) and all(reason == BY_DEFAULT for reason in asking)
        if asked and extra and command in self.begun:
            reasons = [_AGAIN] if is_usual or explanation.decision == 'allow' else [*reasons, _AGAIN]
            is_usual = False
        return ApprovalRequest(
            tool_name=ctx.tool_name,
            args=dict(ctx.args),
            description=explanation.description or described(command),
            described_by='the shell rules' if explanation.description else None,
            # An argument outside of the payload is treated as secret: it would be redacted in the log, and a remembered
            # approval would cover any value of it.
            payload={
                'command': command,
                **{name: ctx.args[name] for name in ('access', 'background') if name in ctx.args},
                **bound_to,
                **(definitions if extra else {}),
            },
            # Never shortened: the approver would approve the rest unseen.
            presentation=ApprovalPresentation(
                type='command',
                content=command,
                language='bash',
                metadata={
                    'cwd': self.cwd,
                    'parts': [part.as_json() for part in explanation.parts],
                    **(
                        {EXTRA_ACCESS: list(lines), BRIEF_ACCESS: list(extra.describe(self.cwd, brief=True))}
                        if extra
                        else {}
                    ),
                    **({'is_usual': True} if is_usual else {}),
                    **({'defaults': {'background': False}} if 'background' in ctx.args else {}),
                },
            ),
            reason='; '.join(reasons),
            remember_options=options,
            bound_to=bound_to,
            answers=None if self.can_be_remembered(explanation, extra) else ('approve', 'edit', 'deny'),
        )

    async def run(self, command: str) -> ShellResult:
        """Run a command. The caller must make sure that the command was approved. A blocked command never runs.

        Raises:
            ApprovalBlocked: A rule blocks the command.
            MissingExtraError: tree-sitter is not installed.
            asyncio.CancelledError: The caller was cancelled. The command has been ended.
        """
        return await self._run(command, self._unconfined)

    async def _run(
        self, command: str, execute: Callable[[list[str], Explanation], Awaitable[ShellResult]]
    ) -> ShellResult:
        """Run a command as `run` does, but with the function `execute`."""
        # Imported late: judging a command does not need asyncio.
        from .running import ShellResult

        explanation = self.explain(command)
        if explanation.decision == 'block':
            raise ApprovalBlocked('shell', _refusal(explanation))
        shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), None)
        if shell is None:
            return ShellResult(exit_status=None, stdout='', stderr='', problem='bash was not found')
        self.begun.add(command)
        # `--`: otherwise bash reads a command that begins with a dash as options.
        return await execute([shell, '--noprofile', '--norc', '-c', '--', command], explanation)

    async def _unconfined(self, argv: list[str], explanation: Explanation) -> ShellResult:
        return await self._started(self._wrap(argv) if self._wrap is not None else argv)

    async def _started(self, argv: list[str]) -> ShellResult:
        """Run a program with the settings of this tool."""
        from .running import run_command

        return await run_command(
            argv,
            cwd=self.cwd,
            env=self._env,
            timeout_s=self.config.timeout_s,
            max_bytes=self._max_output_bytes,
            limits=self.limits,
            on_output=self.on_output,
            inherited=self.inherited,
        )

    @property
    def inherited(self) -> Collection[int]:
        """Descriptors that the command line of a command needs."""
        return ()

    @property
    def limits(self) -> Limits | None:
        """Limits of a command; `None` where only the time is limited."""
        return None

    async def __call__(self, command: str) -> str:
        """Run a command, and return the result as text for the model."""
        return (await self.run(command)).for_model()


_MOST_DIGESTED_BYTES: Final = 64 << 20
_MAKEFILES: Final = ('GNUmakefile', 'makefile', 'Makefile')
"""Files of the working directory that say what the targets of `make` run."""


def digest_of(path: str) -> str:
    """Return a text that changes with the content of a file."""
    with suppress(OSError), open(path, 'rb', opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if status.st_size > _MOST_DIGESTED_BYTES or not stat.S_ISREG(status.st_mode):
            return f'{status.st_ino}-{status.st_size}-{status.st_ctime_ns}'
        return hashlib.file_digest(file, 'sha256').hexdigest()
    return ''


def _why(explanation: Explanation) -> str:
    """Return the reason why the command needs approval. If the command has several parts, the reason names the part."""
    part = explanation.deciding
    # A wrapper such as `python -m pytest` is a part of its own, in addition to the command that it runs.
    if len(explanation.parts) == 1 or part.text == explanation.command.strip():
        return part.reason
    more = sum(each.decision == 'ask' for each in explanation.parts) - 1
    also = f' (and {more} more)' if more else ''
    return f'`{printable(part.text)}`{also}: {part.reason}'


def _refusal(explanation: Explanation) -> str:
    part = explanation.deciding
    return f'This command is blocked: {part.reason}. Do not try this call in another form.'


def described(command: str) -> str:
    """Return the one-line description of a command."""
    line = ' '.join(command.split())
    return f'Run: {line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 3] + "..."}'

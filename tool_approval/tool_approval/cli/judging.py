"""What a configuration says of calls. Nothing is run, written or made.

The precedence is `ApprovalPolicy.judge`'s, which the controller asks as well; here it is only told in parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tool_approval.canonical import canonical_json
from tool_approval.errors import NotCanonicalError
from tool_approval.request import ApprovalContext, ApprovalRequest
from tool_approval.settings.model import DEFAULT_SANDBOX, Settings
from tool_approval.settings.protection import protected_paths
from tool_approval.tools.file_sandbox import FileSandbox, FileTools
from tool_approval.tools.shell import Explanation, ShellConfig, ShellTool

from .calls import FILE_TOOLS, SHELL_TOOLS, Call
from .judgement import Decision, Judgement, Said, strictest
from .rule_names import RuleNames

T = TypeVar('T')


class Judge:
    """One configuration in one directory, as if it were trusted."""

    def __init__(self, settings: Settings, directory: Path, *, source: Path | None = None) -> None:
        """Compile the rules.

        Args:
            settings: The configuration.
            directory: Where commands run and relative paths begin.
            source: The file it was read from.

        Raises:
            ApprovalConfigError: Two roots are the same directory, a shell rule names a root there is not, or does not
                decide its own examples.
            MissingExtraError: tree-sitter is not installed, and a shell rule has examples.
            NotImplementedError: The system lacks what the file sandbox stands on, as Windows does.
        """
        self.settings = settings
        self._directory = Path(os.path.realpath(directory))
        self._policy = settings.policy
        self._names = RuleNames(settings.policy_config)
        self._sandbox = settings.sandbox or DEFAULT_SANDBOX
        roots = [Path(os.path.realpath(self._directory / each.root)) for each in self._sandbox.paths.values()]
        self._protected = protected_paths(self._directory, source, roots)
        self._files = self._new_files()
        self._shell = _ExplainingShell(
            settings.shell or ShellConfig(),
            cwd=self._directory,
            roots={name: self._is_in(name) for name in self._sandbox.paths},
            is_writable=self._is_writable,
        )

    def files(self) -> FileSandbox:
        """The file sandbox, of the roots as they are now: a batch may outlive a directory."""
        if not all(root.is_where_it_was for root in self._files.roots.all):
            self._files = self._new_files()
        return self._files

    def _new_files(self) -> FileSandbox:
        return FileSandbox(self._sandbox, self._directory, protected=self._protected)

    def judge(self, call: Call) -> Judgement:
        """What the policy says to a call.

        Raises:
            MissingExtraError: It is a command, and tree-sitter is not installed.
        """
        try:
            canonical_json(call.args)
        except NotCanonicalError as error:
            # As the controller does: what cannot be compared cannot be approved.
            reason = f'the arguments cannot be judged ({error.problem}), so the call is denied'
            said = Said(text=call.tool, kind='arguments', decision='block', rule=None, reason=reason)
            return Judgement(deciding=said, parts=[said])
        return strictest([self._judge(name, call) for name in self._names_of(call)])

    def _names_of(self, call: Call) -> list[str]:
        """What the policy may call the tool: a rule for either name of the shell tool counts, the stricter one more."""
        if not call.is_shell:
            return [call.tool]
        return [name for name in SHELL_TOOLS if self._policy.rule_for(name).approval is not None] or [call.tool]

    def _judge(self, name: str, call: Call) -> Judgement:
        logic = self._logic(call)
        context = ApprovalContext(tool_name=name, args=call.args)
        verdict = _finished(self._policy.judge(context, logic=[] if logic is None else [logic]))
        decision: Decision = 'block' if verdict.is_blocked else 'allow' if verdict.is_pre_approved else 'ask'
        configured = self._policy.rule_for(name).approval
        # Where the configuration blocks the tool, nobody has asked it.
        own = [] if logic is None or configured == 'blocked' else logic.parts()
        if own and (configured is None or decision == 'block'):
            return Judgement(deciding=strictest(own), parts=own)
        said = self._said_of_tool(name, decision, has_own=bool(own))
        return Judgement(deciding=said, parts=[*own, said])

    def _said_of_tool(self, name: str, decision: Decision, *, has_own: bool) -> Said:
        rule = self._names.deciding(name)
        if rule is None:
            what = {'allow': 'nobody is asked', 'ask': 'somebody is asked', 'block': 'it never runs'}[decision]
            reason = f'nothing is configured for it, and by default {what}'
        else:
            what = {'allow': 'lets it run unasked', 'ask': 'asks', 'block': 'blocks it'}[decision]
            weight = ', and counts for more than what the tool says itself' if has_own else ''
            reason = f'the tool rule `{rule}` {what}{weight}'
        return Said(text=name, kind='tool', decision=decision, rule=rule or 'default', reason=reason)

    def _logic(self, call: Call) -> _Logic | None:
        if call.is_shell:
            return self._shell
        if call.tool in FILE_TOOLS:
            return _ExplainingFiles(self.files(), call)
        return None

    def _is_in(self, name: str) -> Callable[[str], bool]:
        return lambda path: self.files().root_of(path) == name

    def _is_writable(self, path: str) -> bool:
        try:
            return not self.files().needs_write_approval(path)
        except PermissionError:
            return False


class _Logic(Protocol):
    """A tool that says itself what it thinks of a call, and afterwards in parts why."""

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None: ...

    def parts(self) -> list[Said]: ...


class _ExplainingShell(ShellTool):
    """Keeps what it explained last. One thread uses it."""

    _explained: Explanation | None = None

    def explain(self, command: str) -> Explanation:
        self._explained = super().explain(command)
        return self._explained

    def parts(self) -> list[Said]:
        assert self._explained is not None, 'the policy has asked it'
        return [Said(**part.as_json()) for part in self._explained.parts]


class _ExplainingFiles:
    """One call of a file tool."""

    def __init__(self, sandbox: FileSandbox, call: Call) -> None:
        self._sandbox = sandbox
        self._call = call
        self._refusal: str | None = None

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        # By the operation's own name, whatever the policy calls it.
        context = ctx.model_copy(update={'tool_name': self._call.tool})
        try:
            return FileTools(self._sandbox).check_approval(context)
        except PermissionError as error:
            self._refusal = str(error)
            raise

    def parts(self) -> list[Said]:
        path, dest = self._call.args['path'], self._call.args.get('dest')
        if self._refusal is not None:
            return [self._refused([path, *([] if dest is None else [dest])], self._refusal)]
        said: list[Said] = []
        try:
            with self._sandbox.open(self._call.tool, path, dest) as access:
                for target in access.targets:
                    reason = ' '.join(target.needs) or f'the root `{target.root.name}` asks nobody about it'
                    decision: Decision = 'ask' if target.needs else 'allow'
                    said.append(
                        Said(text=target.key, kind='path', decision=decision, rule=target.root.name, reason=reason)
                    )
        except PermissionError as error:  # it has changed just now
            return [self._refused([path], str(error))]
        return said

    def _refused(self, paths: list[str], reason: str) -> Said:
        roots = (self._sandbox.root_of(path) for path in paths)
        rule = next((root for root in roots if root is not None), None)
        return Said(text=' '.join(paths), kind='path', decision='block', rule=rule, reason=reason)


def _finished(judging: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that has nothing to wait for: the logic of the tools here is not asynchronous.

    Without an event loop, whose import alone would cost a third of the start-up time there is.
    """
    try:
        judging.send(None)
    except StopIteration as finished:
        return finished.value
    raise AssertionError('nothing here waits')  # pragma: no cover - a mistake of ours

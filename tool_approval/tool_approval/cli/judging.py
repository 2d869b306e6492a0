"""What a configuration says of calls. Nothing is run, written or made.

It is what the tools and the policy of an agent would say; but they make requests of it, which are models of pydantic,
and that takes longer to start than everything here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.tool_rules import Approval, InForce, ToolRules
from tool_approval.settings.plain import DEFAULT_SANDBOX, DEFAULT_SHELL
from tool_approval.settings.protection import protected_paths
from tool_approval.tools.file_sandbox.rules import Target
from tool_approval.tools.file_sandbox.sandbox import Access, FileSandbox
from tool_approval.tools.shell.examples import check_rules
from tool_approval.tools.shell.judge import Judge as ShellJudge

from .calls import FILE_TOOLS, SHELL_TOOLS, Call
from .judgement import Decision, Judgement, Said, strictest

if TYPE_CHECKING:
    from tool_approval.settings.model import Settings


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
        self._rules = ToolRules({**settings.tools, **settings.custom_tools})
        self._sandbox = settings.sandbox or DEFAULT_SANDBOX
        roots = [Path(os.path.realpath(self._directory / each.root)) for each in self._sandbox.paths.values()]
        self._protected = protected_paths(self._directory, source, roots)
        self._files = self._new_files()
        shell, cwd = settings.shell or DEFAULT_SHELL, str(self._directory)
        in_roots = {name: self._is_in(name) for name in self._sandbox.paths}
        check_rules(shell, cwd=cwd, roots=in_roots)
        self._shell = ShellJudge(shell, cwd=cwd, roots=in_roots, is_writable=self._is_writable)

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
        return [name for name in SHELL_TOOLS if self._rules.find(name).approval is not None] or [call.tool]

    def _judge(self, name: str, call: Call) -> Judgement:
        found = self._rules.find(name)
        # Where the configuration blocks the tool, nobody asks it.
        own = [] if found.approval == 'blocked' else self._own(call)
        said_itself = strictest(own).decision if own else None
        decision = outcome(found.approval, said_itself, self.settings.default)
        if own and (found.approval is None or decision == 'block'):
            return Judgement(deciding=strictest(own), parts=own)
        said = _said_of_tool(name, found, decision, has_own=bool(own))
        return Judgement(deciding=said, parts=[*own, said])

    def _own(self, call: Call) -> list[Said]:
        """What a tool says itself, in parts; nothing if it is none of those that are known here."""
        if call.is_shell:
            return [Said(**part.as_json()) for part in self._shell.explain(call.args['command']).parts]
        return _said_of_files(self.files(), call) if call.tool in FILE_TOOLS else []

    def _is_in(self, name: str) -> Callable[[str], bool]:
        is_blocked = self._sandbox.paths[name].read_approval == 'blocked'
        return lambda path: not is_blocked and self.files().root_of(path) == name

    def _is_writable(self, path: str) -> bool:
        try:
            return not self.files().needs_write_approval(path)
        except PermissionError:
            return False


def outcome(configured: Approval | None, own: Decision | None, default: str | None) -> Decision:
    """What holds for a call; the same as `ApprovalPolicy.judge` says (test_judging.py compares them).

    Args:
        configured: By the rule that is in force for the tool.
        own: By the tool itself.
        default: For a tool that nothing is said about.
    """
    if configured == 'blocked' or own == 'block':
        return 'block'
    if configured is not None:
        return 'allow' if configured == 'none' else 'ask'
    if own is not None:
        return own
    return 'allow' if default == 'none' else 'ask'


def _said_of_tool(name: str, found: InForce, decision: Decision, *, has_own: bool) -> Said:
    rule = found.decided_by
    if rule is None:
        what = {'allow': 'nobody is asked', 'ask': 'somebody is asked', 'block': 'it never runs'}[decision]
        reason = f'nothing is configured for it, and by default {what}'
    else:
        what = {'allow': 'lets it run unasked', 'ask': 'asks', 'block': 'blocks it'}[decision]
        weight = ', and counts for more than what the tool says itself' if has_own else ''
        reason = f'the tool rule `{rule}` {what}{weight}'
    return Said(text=name, kind='tool', decision=decision, rule=rule or 'default', reason=reason)


def _said_of_files(sandbox: FileSandbox, call: Call) -> list[Said]:
    path, dest = call.args['path'], call.args.get('dest')
    try:
        with sandbox.open(call.tool, path, dest) as access:
            if access.needs:
                _check_readable(access)
            return [_said_of_target(target) for target in access.targets]
    except PermissionError as error:
        paths = [path, *([] if dest is None else [dest])]
        roots = (sandbox.root_of(each) for each in paths)
        rule = next((root for root in roots if root is not None), None)
        return [Said(text=' '.join(paths), kind='path', decision='block', rule=rule, reason=str(error))]


def _check_readable(access: Access) -> None:
    """Refuse what the tool refuses before it asks: somebody has to be shown what is replaced or deleted."""
    if access.operation in ('read_file', 'list_files'):
        return
    try:
        for target in access.targets:
            if target.use != 'make':
                target.state()
    except OSError:
        raise PermissionError(f'{access.targets[0].shown} cannot be read, so nobody can be shown what it is.') from None


def _said_of_target(target: Target) -> Said:
    reason = ' '.join(target.needs) or f'the root `{target.root.name}` asks nobody about it'
    decision: Decision = 'ask' if target.needs else 'allow'
    return Said(text=target.key, kind='path', decision=decision, rule=target.root.name, reason=reason)

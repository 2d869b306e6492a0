"""Judge a call in the same way as an agent's tools and policy would, without running anything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tool_approval.core.approvers import ApproverRule
from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.config import InForce, ToolRules
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.request import ApprovalContext, ApprovalRequest
from tool_approval.core.verdict import ApprovalResult
from tool_approval.settings.files import LoadedSettings, expanded, load_settings, with_defaults
from tool_approval.settings.model import DEFAULT_SANDBOX, Settings, read_settings
from tool_approval.settings.protection import (
    is_written_unasked,
    is_written_with_access,
    only_files_protected,
    protected_paths,
    root_checks,
)
from tool_approval.tools.file_sandbox import FileSandbox, FileTools
from tool_approval.tools.file_sandbox.rules import PathTarget
from tool_approval.tools.shell import ShellTool
from tool_approval.tools.shell.explanation import Explanation, Outcome
from tool_approval.tools.shell.tool import BEYOND, OUTSIDE_REASON

from .output import UsageError

if TYPE_CHECKING:
    from tool_approval.os_sandbox import OSSandboxBackend, OSSandboxFallback
    from tool_approval.settings import ConfinedShell
    from tool_approval.settings.host import HostCall

SHELL_TOOLS: Final = ('shell', 'run_shell')
"""Names of the shell tool: the short name on the command line, and the name in agents."""
FILE_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    'read_file': ('path',),
    'write_file': ('path',),
    'edit_file': ('path',),
    'delete': ('path',),
    'make_directory': ('path',),
    'list_files': ('path',),
    'move': ('path', 'dest'),
    'copy': ('path', 'dest'),
}
"""Required arguments of each file tool, except the content to write."""
_LONGEST_NAME: Final = 200
"""Maximum length of a tool's name in characters, more than the 64 that model providers allow."""


def read_call(tool: object, args: object) -> tuple[str, Mapping[str, Any]]:
    """Check the name and the arguments of a tool, and return them as a call.

    Raises:
        UsageError: The values are not a valid call, or a required argument is missing.
    """
    if not isinstance(tool, str) or not tool or len(tool) > _LONGEST_NAME:
        raise UsageError(f'`tool` has to be the name of a tool, at most {_LONGEST_NAME} characters long')
    if not isinstance(args, Mapping):
        raise UsageError('`args` has to be an object')
    given = cast('Mapping[str, Any]', args)
    needed = ('command',) if tool in SHELL_TOOLS else FILE_TOOLS.get(tool, ())
    for name in needed:
        if not isinstance(given.get(name), str):
            raise UsageError(f'`{tool}` needs the string `{name}` in its `args`')
    if tool in FILE_TOOLS and 'dest' not in needed and given.get('dest') is not None:
        raise UsageError(f'`{tool}` takes no `dest`')
    return tool, given


def call_of_words(tool: str, words: Sequence[str], dest: str | None) -> tuple[str, Mapping[str, Any]]:
    """Read a call from the words of a command line.

    The shell tool takes a quoted command, file tools take one or two paths, and other tools take a JSON object.

    Raises:
        UsageError: The words are not valid arguments of the tool.
    """
    if tool in SHELL_TOOLS:
        if len(words) != 1 or dest is not None:
            raise UsageError(f"`{tool}` takes the whole command as one word; put it in quotes: {tool} 'git status'")
        return read_call(tool, {'command': words[0]})
    if tool in FILE_TOOLS:
        given = [*words, *([] if dest is None else [dest])]
        names = FILE_TOOLS[tool]
        if len(given) != len(names):
            wanted = 'a path and a destination' if len(names) > 1 else 'one path'
            raise UsageError(f'`{tool}` takes {wanted}; put quotes around a name that contains blanks')
        return read_call(tool, dict(zip(names, given, strict=True)))
    if len(words) > 1 or dest is not None:
        raise UsageError(f'`{tool}` takes its arguments as one JSON object, such as \'{{"to": "ada"}}\'')
    try:
        return read_call(tool, decode_arguments(words[0] if words else None))
    except NotCanonicalError as error:
        raise UsageError(f'the arguments of `{tool}` have to be a JSON object: {error.problem}') from None


_VERDICTS: Final[dict[Outcome, ApprovalResult]] = {
    'allow': ApprovalResult.pre_approved(),
    'ask': ApprovalResult.needs_approval(),
    'block': ApprovalResult.blocked('a part of the call is blocked'),
}
"""Verdicts ordered by strictness."""
_STRICTNESS: Final = list(_VERDICTS)
_OUTCOMES: Final[dict[str, Outcome]] = {verdict.status: outcome for outcome, verdict in _VERDICTS.items()}


@dataclass(frozen=True, kw_only=True)
class PartDecision:
    """Decision about one part of a call."""

    text: str
    """Text of the part: a command, a file to write, a path, or the name of the tool."""
    kind: str
    """Kind of the part: `path`, `tool`, `arguments`, `access`, or the kind of a shell tool's `Part`."""
    decision: Outcome
    rule: str | None
    """Rule that applies: a shell rule's pattern, a root's name, a tool rule's name or glob, `default`, or `None`."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Decision of the policy about a call."""

    deciding: PartDecision
    parts: Sequence[PartDecision]
    """All parts of the call, including the part that determines the decision."""
    extra_access: Sequence[str] = ()
    """Lines that describe the extra access, as a question would show them to the approver; empty if there is none."""
    remember: Sequence[str] | None = None
    """Words of a rule that would spare the question about a command; `None` if there are none."""
    approvers: Sequence[ApproverRule] = ()
    """Each rule that says who must approve; empty if no one is asked."""

    def as_json(self) -> dict[str, Any]:
        """Return `decision`, `rule` and `parts`, plus `extra_access` and `approvers` if there are any."""
        deciding = self.deciding
        extra = {'extra_access': list(self.extra_access)} if self.extra_access else {}
        parts = [asdict(part) for part in self.parts]
        who = {'approvers': [rule.text for rule in self.approvers]} if self.approvers else {}
        return {'decision': deciding.decision, 'rule': deciding.rule, 'parts': parts, **extra, **who}


def _strictness(part: PartDecision) -> tuple[int, bool]:
    """Return a key that sorts parts by strictness. Allowed parts with a rule come after allowed parts without one."""
    return _STRICTNESS.index(part.decision), part.decision == 'allow' and part.rule is not None


class CallJudge:
    """Judges calls with one configuration in one directory, as if the configuration were trusted."""

    def __init__(
        self,
        settings: Settings | LoadedSettings,
        directory: Path,
        *,
        find_backend: Callable[[Settings], OSSandboxBackend] | None = None,
    ) -> None:
        """Build the tools that the configuration describes. The tools work in `directory`.

        Args:
            settings: The configuration.
            directory: The working directory.
            find_backend: Function such as `choose_backend` that returns this machine's OS sandbox. Without the
                function, the judge assumes that an OS sandbox works, and does not determine extra access.

        Raises:
            ApprovalConfigError: Two roots have the same directory or name, or a shell rule names an unknown root or
                contradicts its examples.
            MissingExtraError: PyYAML (for presets) or tree-sitter (for examples in shell rules) is not installed.
            NotImplementedError: The file sandbox does not support this operating system.
        """
        loaded = settings if isinstance(settings, LoadedSettings) else None
        self._given = settings if loaded is None else replace(loaded, trusted=True)
        given = settings if isinstance(settings, Settings) else settings.settings
        self.settings = expanded(given)
        self._folder = Path(os.path.realpath(directory))
        self._find_backend = find_backend
        self.refusal: str | None = None
        """Reason why `tool-approval run` cannot start with these settings on this machine; `None` if it can."""
        self._is_refusing = False
        self._is_held = True
        is_open = given.shell is not None and given.shell.default.allowed and not given.shell.default.approval
        if find_backend is not None and (given.extends or given.require_os_sandbox or is_open):
            self._adapt(find_backend)
        self._sandbox = self.settings.sandbox or DEFAULT_SANDBOX
        source, named_as = (None, None) if loaded is None else (loaded.source, loaded.named_as)
        self._protected = (
            *protected_paths(self._folder, source, self._sandbox),
            *only_files_protected(self._folder, named_as),
        )
        self._policy = self.settings.policy
        self._rules = ToolRules(self.settings.policy_config.tools)
        self._open()

    def _adapt(self, find_backend: Callable[[Settings], OSSandboxBackend]) -> None:
        """If no OS sandbox works, judge calls with the settings for machines without a sandbox."""
        from tool_approval.os_sandbox import (
            OSSandboxUnavailable,
            RefusingBackend,
        )
        from tool_approval.settings.extends import unconfined

        try:
            backend = find_backend(self.settings)
        except OSSandboxUnavailable as error:
            self.refusal = str(error)
            return
        self._is_refusing = isinstance(backend, RefusingBackend)
        self._is_held = backend.name == 'bubblewrap'
        if not self._is_held:
            self.settings = unconfined(self.settings)

    def _open(self) -> None:
        self._confined: ConfinedShell | None = None
        self.files = FileSandbox(self._sandbox, self._folder, protected=self._protected)
        self._tools = FileTools(self.files)
        self.shell = ShellTool(
            self.settings.shell,
            cwd=self._folder,
            roots=root_checks(self.files, is_confined=self._is_held),
            is_writable=lambda path: is_written_unasked(self.files, path),
            needs_write=(lambda path: is_written_with_access(self.files, path)) if self._is_held else None,
        )

    def judge(self, tool: str, args: Mapping[str, Any]) -> Judgement:
        """Return the policy's decision about a call.

        Raises:
            MissingExtraError: The call is a command, and tree-sitter is not installed.
        """
        # A directory may be removed during a batch.
        if not all(root.is_where_it_was for root in self.files.roots.all):
            self._open()
        try:
            canonical_json(args)
        except NotCanonicalError as error:
            # As in the controller: arguments that cannot be compared cannot be approved.
            reason = f'the arguments are invalid ({error.problem}), so the call is denied'
            denied = PartDecision(text=tool, kind='arguments', decision='block', rule=None, reason=reason)
            return Judgement(deciding=denied, parts=[denied])
        explain = cache(lambda: self.shell.explain(args['command']))
        judged = [self._judge(name, tool, args, explain) for name in self._names_of(tool, args)]
        strictest = max(judged, key=lambda each: _strictness(each.deciding))
        if strictest.deciding.decision == 'ask':
            names = SHELL_TOOLS if tool in SHELL_TOOLS else (tool,)
            asked = [self._policy.approvers_of(ApprovalRequest(tool_name=name, args=args)) for name in names]
            strictest = replace(strictest, approvers=list(dict.fromkeys(rule for each in asked for rule in each)))
        is_asking = any(part.decision == 'ask' and part.kind != 'tool' for part in strictest.parts)
        if tool not in SHELL_TOOLS or strictest.deciding.decision != 'ask' or not is_asking:
            return strictest
        host = self._host_call(args)
        lines = self._extra_access(explain(), args) if host is None else host.lines
        return replace(strictest, extra_access=lines, remember=explain().remember)

    def _names_of(self, tool: str, args: Mapping[str, Any]) -> list[str]:
        """Return names to look up in rules. If rules use both names of the shell tool, the stricter rule applies."""
        if tool not in SHELL_TOOLS:
            return [tool]
        return [name for name in SHELL_TOOLS if self._rules.find(name, args).approval is not None] or [tool]

    def _judge(self, name: str, tool: str, args: Mapping[str, Any], explain: Callable[[], Explanation]) -> Judgement:
        found = self._rules.find(name, args)
        # If the configuration blocks a tool, the tool's own check is not asked.
        own = [] if found.approval == 'blocked' else self._own(tool, args, explain)
        settled = self._policy.settle(name, args, _VERDICTS[max(own, key=_strictness).decision] if own else None)
        decision = _OUTCOMES[settled.status]
        if own and (found.approval is None or decision == 'block'):
            return Judgement(deciding=max(own, key=_strictness), parts=own)
        of_tool = _of_tool(name, found, decision, has_own=bool(own))
        return Judgement(deciding=of_tool, parts=[*own, of_tool])

    def _own(self, tool: str, args: Mapping[str, Any], explain: Callable[[], Explanation]) -> list[PartDecision]:
        """Return the decisions of the tool's own rules. The list is empty unless the tool is a shell or file tool."""
        if tool not in SHELL_TOOLS and tool not in FILE_TOOLS:
            return []
        if self._is_refusing:
            from tool_approval.settings.refusing import REFUSED

            return [PartDecision(text=tool, kind='tool', decision='block', rule=None, reason=REFUSED)]
        return self._of_command(args, explain()) if tool in SHELL_TOOLS else self._of_files(tool, args)

    def _of_command(self, args: Mapping[str, Any], explanation: Explanation) -> list[PartDecision]:
        parts = [PartDecision(**part.as_json()) for part in explanation.parts]
        asked = args.get('access')
        text = f'access {asked}' if asked else args['command']
        try:
            host = self._host_call(args)
            extra = self._extra_access(explanation, args) if host is None else ()
        except PermissionError as error:
            return [*parts, PartDecision(text=text, kind='access', decision='block', rule=None, reason=str(error))]
        if host is not None:
            parts.append(PartDecision(text=text, kind='access', decision='ask', rule=None, reason=OUTSIDE_REASON))
        elif extra and (asked or explanation.decision == 'allow'):
            reason = 'the model requests extra access' if asked else BEYOND
            parts.append(PartDecision(text=text, kind='access', decision='ask', rule=None, reason=reason))
        return parts

    def _extra_access(self, explanation: Explanation, args: Mapping[str, Any]) -> Sequence[str]:
        """Return the extra access that `tool-approval run` would list in its question about a command.

        Raises:
            PermissionError: The call requests an unknown kind of access.
        """
        shell = self._shell_of_a_run(args)
        return () if shell is None else shell.extra_access(explanation, args).describe(shell.cwd)

    def _host_call(self, args: Mapping[str, Any]) -> HostCall | None:
        """Return the call that `tool-approval run` would run outside of the sandbox, if it is one.

        Raises:
            PermissionError: The call requests to run outside, and cannot, or cannot work in the sandbox.
        """
        shell = self._shell_of_a_run(args)
        return None if shell is None else shell.host_call(args)

    def _shell_of_a_run(self, args: Mapping[str, Any]) -> ConfinedShell | None:
        """Return the shell tool of `tool-approval run`, or `None` if a call can be given no access."""
        if self._find_backend is None or not (args.get('access') or self._is_held):
            return None
        # Imported here, because few calls need these slow imports.
        from tool_approval.os_sandbox import OSSandboxError
        from tool_approval.settings.workspace import open_workspace

        try:
            if self._confined is None:
                backend = self._find_backend(self.settings)
                self._confined = open_workspace(self._given, self._folder, backend=backend, caches=False).shell
        except OSSandboxError as error:
            self.refusal = str(error)
        return self._confined

    def _of_files(self, tool: str, args: Mapping[str, Any]) -> list[PartDecision]:
        path, dest = args['path'], args.get('dest')
        try:
            self._tools.check_approval(ApprovalContext(tool_name=tool, args=args))
            with self.files.open(tool, path, dest) as access:
                return [_of_target(target) for target in access.targets]
        except PermissionError as error:
            paths = [path, *([] if dest is None else [dest])]
            rule = next((root for root in map(self.files.root_of, paths) if root is not None), None)
            return [PartDecision(text=' '.join(paths), kind='path', decision='block', rule=rule, reason=str(error))]


def _of_tool(name: str, found: InForce, decision: Outcome, *, has_own: bool) -> PartDecision:
    rule = found.decided_by
    if rule is None:
        reason = f'no rule matches, and the default is to {decision}'
    else:
        what = {'allow': 'allows the call', 'ask': 'requires approval', 'block': 'blocks the call'}[decision]
        weight = ", and overrides the tool's own check" if has_own else ''
        case = '' if found.case is None else f'case {found.case} of '
        why = '' if found.reason is None else f', because the value of {found.reason}'
        reason = f'{case}the tool rule `{rule}` {what}{weight}{why}'
    return PartDecision(text=name, kind='tool', decision=decision, rule=rule or 'default', reason=reason)


def _of_target(target: PathTarget) -> PartDecision:
    preset = getattr(target.root.config, 'preset', None)
    of_preset = '' if preset is None else f' of the preset `{preset}`'
    reason = ' '.join(target.needs) or f'the root `{target.root.name}`{of_preset} allows this access'
    decision: Outcome = 'ask' if target.needs else 'allow'
    return PartDecision(text=target.key, kind='path', decision=decision, rule=target.root.name, reason=reason)


_KEPT: Final = 64
"""Maximum number of compiled configurations in the cache."""

_NO_FILE: Final = '{} has no settings file, so the preset `default` applies, as in `tool-approval run`'


class Configurations:
    """Finds a call's configuration, in the call itself or in the directory's settings file, and compiles it."""

    def __init__(self, named: str | None, notify: Callable[[str], None]) -> None:
        """Use the settings file given on the command line (`named`), if any, and call `notify` to report problems."""
        self._named = None if named is None else os.path.abspath(named)
        self._notify = notify
        self._of_text = lru_cache(maxsize=_KEPT)(self._compiled)
        self._of_directory = lru_cache(maxsize=_KEPT)(self._loaded)
        self._choose_backend = lru_cache(_chosen_backend)  # probing one starts a program

    def judge_for(self, directory: str | None = None, config: Mapping[str, Any] | None = None) -> CallJudge:
        """Return the judge for a call in a directory. `config`, if given, replaces the settings of the directory.

        Raises:
            UsageError: The directory does not exist, or the configuration is not JSON.
            ApprovalError: The configuration contains a mistake, or requires a package that is not installed.
        """
        folder = existing_directory(directory)
        if config is None:
            return self._of_directory(folder)
        try:
            return self._of_text(canonical_json(config), folder)
        except NotCanonicalError as error:
            raise UsageError(f'`config` cannot be read: {error.problem}') from None

    def _loaded(self, folder: Path) -> CallJudge:
        loaded = load_settings(self._named, directory=folder, named=self._named is not None)
        if loaded.source is None:
            loaded = with_defaults(loaded)
            self._notify(_NO_FILE.format(folder))
        elif not loaded.trusted:
            self._notify(
                f'{loaded.source} is not trusted ({loaded.why_untrusted}), so an agent uses it only to tighten the '
                'defaults. `explain` treats the file as trusted; `tool-approval trust` shows what the file would allow'
            )
        return CallJudge(loaded, folder, find_backend=self._find_backend)

    def _compiled(self, text: str, folder: Path) -> CallJudge:
        return CallJudge(read_settings(json.loads(text)), folder, find_backend=self._find_backend)

    def _find_backend(self, settings: Settings) -> OSSandboxBackend:
        return self._choose_backend(settings.require_os_sandbox, settings.os_sandbox_fallback)


def _chosen_backend(require: bool, fallback: OSSandboxFallback) -> OSSandboxBackend:
    from tool_approval.os_sandbox import choose_backend

    return choose_backend(require=require, fallback=fallback)


def existing_directory(path: str | None) -> Path:
    """Return the absolute path of a directory.

    Raises:
        UsageError: The directory does not exist.
    """
    folder = os.path.abspath(path or '.')
    if '\0' in folder or not os.path.isdir(folder):
        raise UsageError(f'`{folder}` is not a directory')
    return Path(folder)

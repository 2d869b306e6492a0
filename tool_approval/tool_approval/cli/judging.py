"""What a configuration says of calls. Nothing is run, written or made.

It is what the tools and the policy of an agent would say; but they make requests of it, which are models of pydantic,
and that takes longer to start than everything here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from tool_approval.core.canonical import canonical_json, decode_arguments
from tool_approval.core.errors import NotCanonicalError
from tool_approval.core.tool_rules import Approval, InForce, ToolRules
from tool_approval.settings.files import load_settings
from tool_approval.settings.plain import DEFAULT_SANDBOX, DEFAULT_SHELL, plain_settings
from tool_approval.settings.protection import protected_paths
from tool_approval.tools.file_sandbox.rules import PathTarget
from tool_approval.tools.file_sandbox.sandbox import FileAccess, FileSandbox
from tool_approval.tools.shell.judge import ShellJudge
from tool_approval.tools.shell.rules import check_rules

from .output import UsageError

if TYPE_CHECKING:
    from tool_approval.core.config import LineOf
    from tool_approval.settings.model import Settings

SHELL_TOOLS: Final = ('shell', 'run_shell')
"""The shell tool: its short name, and what agents call it."""
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
"""What each file tool has to be told; what it would write may be left out."""
_LONGEST_NAME: Final = 200
"""Chosen: hosts allow 64 characters."""


@dataclass(frozen=True, kw_only=True)
class CallToJudge:
    """A tool and its arguments."""

    tool: str
    """Its name."""
    args: Mapping[str, Any]
    """Values by parameter name."""

    @property
    def is_shell(self) -> bool:
        """Whether it is a command."""
        return self.tool in SHELL_TOOLS


def read_call(tool: object, args: object) -> CallToJudge:
    """A call of JSON values.

    Raises:
        UsageError: It is none, or lacks what the tool has to be told.
    """
    if not isinstance(tool, str) or not tool or len(tool) > _LONGEST_NAME:
        raise UsageError(f'`tool` has to be the name of a tool, at most {_LONGEST_NAME} characters long')
    if not isinstance(args, Mapping):
        raise UsageError('`args` has to be an object')
    call = CallToJudge(tool=tool, args=cast('Mapping[str, Any]', args))
    needed = ('command',) if call.is_shell else FILE_TOOLS.get(tool, ())
    for name in needed:
        if not isinstance(call.args.get(name), str):
            raise UsageError(f'`{tool}` needs `{name}` as a text in its `args`')
    if tool in FILE_TOOLS and 'dest' not in needed and call.args.get('dest') is not None:
        raise UsageError(f'`{tool}` takes no `dest`')
    return call


def call_of_words(tool: str, words: Sequence[str], dest: str | None) -> CallToJudge:
    """A call of a command line.

    Args:
        tool: The tool.
        words: A command as one word, a path, a path and a destination, or a JSON object.
        dest: The destination, where it was given by its option.

    Raises:
        UsageError: They do not fit the tool.
    """
    if tool in SHELL_TOOLS:
        if len(words) != 1 or dest is not None:
            raise UsageError(f"`{tool}` takes the whole command as one word; put it in quotes: '{tool}' 'git status'")
        return read_call(tool, {'command': words[0]})
    if tool in FILE_TOOLS:
        given = [*words, *([] if dest is None else [dest])]
        names = FILE_TOOLS[tool]
        if len(given) != len(names):
            wanted = 'a path and a destination' if len(names) > 1 else 'one path'
            raise UsageError(f'`{tool}` takes {wanted}; put names with blanks in quotes')
        return read_call(tool, dict(zip(names, given, strict=True)))
    if len(words) > 1 or dest is not None:
        raise UsageError(f'`{tool}` takes its arguments as one JSON object, such as \'{{"to": "ada"}}\'')
    try:
        return read_call(tool, decode_arguments(words[0] if words else None))
    except NotCanonicalError as error:
        raise UsageError(f'the arguments of `{tool}` have to be a JSON object: {error.problem}') from None


Decision = Literal['allow', 'ask', 'block']
"""It runs unasked, somebody is asked, or it never runs."""
STRICTNESS: Final[dict[Decision, int]] = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one rule says of one part of a call."""

    text: str
    """The part: a command, a file that is written, a path, or the tool itself."""
    kind: str
    """`command`, `redirection`, `assignment` or `syntax`; `path`; `tool`; `arguments`."""
    decision: Decision
    """What holds for this part alone."""
    rule: str | None
    """The pattern of the shell rule, the name of the root, the name or glob of the tool rule, or `default`; `None`
    where no rule may decide."""
    reason: str
    """Why, for a person."""

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON object with the names of the fields as keys."""
        return {
            'text': self.text,
            'kind': self.kind,
            'decision': self.decision,
            'rule': self.rule,
            'reason': self.reason,
        }


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the policy says of a call."""

    deciding: Said
    """What counts."""
    parts: Sequence[Said]
    """All that was said, the deciding one among it."""

    @property
    def decision(self) -> Decision:
        """What holds for the call."""
        return self.deciding.decision

    @property
    def rule(self) -> str | None:
        """The rule that decides; see `Said`."""
        return self.deciding.rule

    def as_json(self) -> dict[str, Any]:
        """`decision`, `rule` and `parts`."""
        return {
            'decision': self.decision,
            'rule': self.rule,
            'parts': [part.as_json() for part in self.parts],
        }


S = TypeVar('S', Said, Judgement)


def strictest(said: Sequence[S]) -> S:
    """The first of the strictest; of what is allowed, the first that a rule allows."""
    return max(said, key=lambda each: (STRICTNESS[each.decision], each.decision == 'allow' and each.rule is not None))


class CallJudge:
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

    def judge(self, call: CallToJudge) -> Judgement:
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

    def _names_of(self, call: CallToJudge) -> list[str]:
        """What the policy may call the tool: a rule for either name of the shell tool counts, the stricter one more."""
        if not call.is_shell:
            return [call.tool]
        return [name for name in SHELL_TOOLS if self._rules.find(name).approval is not None] or [call.tool]

    def _judge(self, name: str, call: CallToJudge) -> Judgement:
        found = self._rules.find(name)
        # Where the configuration blocks the tool, nobody asks it.
        own = [] if found.approval == 'blocked' else self._own(call)
        said_itself = strictest(own).decision if own else None
        decision = outcome(found.approval, said_itself, self.settings.default)
        if own and (found.approval is None or decision == 'block'):
            return Judgement(deciding=strictest(own), parts=own)
        said = _said_of_tool(name, found, decision, has_own=bool(own))
        return Judgement(deciding=said, parts=[*own, said])

    def _own(self, call: CallToJudge) -> list[Said]:
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


def _said_of_files(sandbox: FileSandbox, call: CallToJudge) -> list[Said]:
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


def _check_readable(access: FileAccess) -> None:
    """Refuse what the tool refuses before it asks: somebody has to be shown what is replaced or deleted."""
    if access.operation in ('read_file', 'list_files'):
        return
    try:
        for target in access.targets:
            if target.use != 'make':
                target.state()
    except OSError:
        raise PermissionError(f'{access.targets[0].shown} cannot be read, so nobody can be shown what it is.') from None


def _said_of_target(target: PathTarget) -> Said:
    reason = ' '.join(target.needs) or f'the root `{target.root.name}` asks nobody about it'
    decision: Decision = 'ask' if target.needs else 'allow'
    return Said(text=target.key, kind='path', decision=decision, rule=target.root.name, reason=reason)


_KEPT: Final = 64
"""Chosen: lines of a batch that alternate between more configurations are compiled anew."""

_NO_FILE: Final = (
    '{} has no settings file, so everything is asked about, in a root called `workspace`; `tool-approval run` has defaults '
    'of its own there, under which the directory may be read'
)


class Configurations:
    """The configurations of one process."""

    def __init__(self, named: str | None, tell: Callable[[str], None]) -> None:
        """Read nothing yet.

        Args:
            named: The file from the command line; `None` for the one in each directory.
            tell: Told, once for each directory, that a file is not trusted, or that there is none.
        """
        self._named = None if named is None else os.path.abspath(named)
        self._tell = tell
        self._of_text = lru_cache(maxsize=_KEPT)(_compiled)
        self._of_directory = lru_cache(maxsize=_KEPT)(self._loaded)

    def judge_for(self, directory: str | None = None, config: Mapping[str, Any] | None = None) -> CallJudge:
        """The judge of a call.

        Args:
            directory: The working directory, relative to the process's; that one if `None`.
            config: What the call brings, in the shape of `approvals.yaml`; the file if `None`.

        Raises:
            UsageError: The directory is none, or the configuration is no JSON.
            ApprovalError: The configuration has a mistake, or what it needs is not installed.
        """
        folder = existing_directory(directory)
        if config is None:
            return self._of_directory(folder)
        try:
            return self._of_text(canonical_json(config), folder)
        except NotCanonicalError as error:
            raise UsageError(f'`config` cannot be read: {error.problem}') from None

    def _loaded(self, folder: Path) -> CallJudge:
        loaded = load_settings(self._named, directory=folder, named=self._named is not None, read=_read)
        if loaded.source is None:
            self._tell(_NO_FILE.format(folder))
        elif not loaded.trusted:
            self._tell(
                f'{loaded.source} is not trusted ({loaded.why_untrusted}): until it is, it only tightens the defaults, '
                'and `explain` judges as if it were; `tool-approval trust` shows what it would allow'
            )
        return CallJudge(loaded.settings, folder, source=loaded.source)


def existing_directory(path: str | None) -> Path:
    """A directory, absolute.

    Raises:
        UsageError: There is none.
    """
    folder = os.path.abspath(path or '.')
    if '\0' in folder or not os.path.isdir(folder):
        raise UsageError(f'`{folder}` is no directory')
    return Path(folder)


def _compiled(text: str, folder: Path) -> CallJudge:
    return CallJudge(_read(json.loads(text)), folder)


def _read(document: Mapping[str, Any], *, source: str | None = None, line_of: LineOf = lambda path: None) -> Settings:
    plain = plain_settings(document)
    if plain is not None:
        return plain
    # Here: its import takes longer than everything else that is done for one call.
    from tool_approval.settings.reading import read_settings

    return read_settings(document, source=source, line_of=line_of)

"""Implement `tool-approval check`: find mistakes in a configuration, and settings that are probably unintended."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Final, Literal

from tool_approval.core.config import LineOf, PolicyConfig, ToolRule, ToolRules, check_offers
from tool_approval.core.errors import ApprovalConfigError, ApprovalError
from tool_approval.os_sandbox.toolchains import configured_problem
from tool_approval.settings.extends import PresetRule
from tool_approval.settings.files import LoadedSettings, expanded, load_settings
from tool_approval.settings.model import Settings
from tool_approval.tools.file_sandbox import FileSandbox, FileTools, PathConfig
from tool_approval.tools.file_sandbox.names import starts_with
from tool_approval.tools.file_sandbox.secrets import glob_problem
from tool_approval.tools.shell import ShellRule
from tool_approval.tools.shell.entries import entries
from tool_approval.tools.shell.labels import label
from tool_approval.tools.shell.names import RUN_PROJECTS, guarded_name, trusted_name
from tool_approval.tools.shell.needs import needed_access, written_paths
from tool_approval.tools.shell.rules import CompiledRule, RuleBook
from tool_approval.tools.shell.scripts import INTERPRETERS, is_shell
from tool_approval.tools.shell.words import fixed

from .judging import FILE_TOOLS, SHELL_TOOLS, CallJudge, existing_directory
from .output import FAILED, Output, UsageError

WARNED: Final = 1
Path = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class ConfigFinding:
    """A problem or a remark about a configuration."""

    level: Literal['error', 'warning', 'note']
    """Severity of the finding. An `error` makes the configuration unusable, and a `note` requires no change."""
    message: str
    """Description of the problem and its solution."""
    path: Path = ()
    """Keys from the top of the configuration to the setting."""
    line: int | None = None
    """1-based line number of the setting, or `None` if unknown."""
    about: str = ''
    """Name of the rule, if the message starts with it. Findings that differ only in the rule are printed together."""

    @property
    def key(self) -> str:
        """The keys of the setting, joined with dots."""
        return '.'.join(str(part) for part in self.path)

    def as_json(self) -> dict[str, Any]:
        """Return `level`, `key`, `line` and `message`."""
        return {'level': self.level, 'key': self.key or None, 'line': self.line, 'message': self.message}


def run(options: argparse.Namespace, output: Output) -> int:
    """Check the configuration and print the findings."""
    source, loaded, findings = inspect(options.file, options.cwd)
    gravest = worst(findings)
    if options.json:
        output.json(
            {
                'source': source,
                'ok': gravest != 'error',
                'trusted': None if loaded is None else loaded.trusted,
                'why_untrusted': None if loaded is None else loaded.why_untrusted,
                'digest': None if loaded is None else loaded.digest,
                'findings': [each.as_json() for each in findings],
            }
        )
    else:
        _print(findings, source, output)
    if gravest == 'error':
        return FAILED
    return WARNED if gravest == 'warning' and options.strict else 0


def inspect(file: str | None, cwd: str | None) -> tuple[str, LoadedSettings | None, list[ConfigFinding]]:
    """Read a configuration and look for mistakes in it.

    `file` is relative to the process's working directory. If `file` is `None`, the settings file in `cwd` is used.

    Returns: The path of the file, the configuration (`None` if the file cannot be read), and the findings.

    Raises:
        UsageError: The directory does not exist, or has no configuration.
    """
    directory = existing_directory(cwd)
    loaded = None
    try:
        loaded = load_settings(None if file is None else os.path.abspath(file), directory=directory)
        if loaded.source is None:
            raise UsageError(f'there is no approvals.yaml in {directory}; give the path of the file')
        judge = CallJudge(loaded, directory)
    except ApprovalError as error:
        if loaded is not None:
            return str(loaded.source), loaded, [_mistake(error, loaded.line_of)]
        if not isinstance(error, ApprovalConfigError):
            raise
        return error.source or str(directory), None, [_mistake(error)]
    findings = [replace(each, line=loaded.line_of(each.path)) for each in remarks(loaded.settings, judge)]
    why = f'the file is not trusted ({loaded.why_untrusted}), so it only adds restrictions; see `tool-approval trust`'
    trust = ConfigFinding(level='note', message='the file is trusted' if loaded.trusted else why)
    hint = 'the file extends no preset; with `extends: [default]`, commands in the OS sandbox run without approval'
    hints = [] if loaded.settings.extends else [ConfigFinding(level='note', message=hint)]
    return str(loaded.source), loaded, [*findings, *hints, trust]


def _mistake(error: ApprovalError, line_of: LineOf = lambda path: None) -> ConfigFinding:
    if not isinstance(error, ApprovalConfigError):
        return ConfigFinding(level='error', message=str(error))
    path = tuple(int(part) if part.isdigit() else part for part in (error.key or '').split('.') if part)
    line = error.line or (line_of(path) if path else None)
    return ConfigFinding(level='error', message=error.problem, path=path, line=line)


def _print(findings: list[ConfigFinding], source: str, output: Output) -> None:
    here = os.getcwd()
    shown = os.path.relpath(source, here) if os.path.dirname(source) == here else source
    for first, *others in alike(findings):
        place = shown if first.line is None else f'{shown}:{first.line}'
        output.line(f'{first.level}: {": ".join(part for part in (place, first.key, first.message) if part)}')
        if others:
            output.line(f'  the same applies to {", ".join(f"{each.about} (line {each.line})" for each in others)}')
    counts = {level: sum(each.level == level for each in findings) for level in ('error', 'warning')}
    output.line(', '.join(f'{count} {level}{"" if count == 1 else "s"}' for level, count in counts.items()))


def alike(findings: Sequence[ConfigFinding]) -> list[list[ConfigFinding]]:
    """Group findings that differ only in the rule that they concern. The original order is kept."""
    groups: dict[object, list[ConfigFinding]] = {}
    for at, each in enumerate(findings):
        said = (each.level, each.path[:-1], each.message.removeprefix(each.about)) if each.about else at
        groups.setdefault(said, []).append(each)
    return list(groups.values())


def remarks(settings: Settings, judge: CallJudge) -> list[ConfigFinding]:
    """Return the warnings and notes about settings that can be used. They have no lines."""
    return [
        *_tool_rules(settings),
        *_cases(settings),
        *_unused(settings),
        *_offers(settings),
        *_roots(judge.files),
        *_toolchains(settings, judge.files),
        *_globs(settings),
        *_shadowed(settings, judge.settings),
        *_pre_approved(settings, judge),
        *_outside(settings),
    ]


def _tool_rules(settings: Settings) -> Iterator[ConfigFinding]:
    config = settings.policy_config
    rules = ToolRules(config.tools)
    paths = {name: ('custom_tools' if name in settings.custom_tools else 'tools', name) for name in config.tools}
    for name, rule in config.tools.items():
        if rule == ToolRule():
            yield _warning(paths[name], 'the rule has no effect; add `approval` or `description`, or remove the rule')
        stronger = next((other for other in config.tools if _never_wins(name, other, config)), None)
        if stronger is not None:
            yield _warning(paths[name], f'the rule never applies: `{stronger}` takes precedence; remove one of them')
    if 'shell' in config.tools and 'run_shell' not in config.tools:
        yield _warning(paths['shell'], 'agents know the shell tool as `run_shell`; rename the rule to `run_shell`')
    for tool in (*SHELL_TOOLS, *FILE_TOOLS):
        found = rules.find(tool)
        if found.decided_by is not None and found.approval == 'none':
            asks = 'the shell rules require approval' if tool in SHELL_TOOLS else 'the roots require approval'
            message = f'`{tool}` runs without approval because of this rule, even if {asks}; blocked calls stay blocked'
            yield _warning(paths[found.decided_by], message)


def _cases(settings: Settings) -> Iterator[ConfigFinding]:
    for name, rule in settings.policy_config.tools.items():
        at_rule = ('custom_tools' if name in settings.custom_tools else 'tools', name, 'cases')
        known = signature(getattr(FileTools, name)).parameters if name in FILE_TOOLS else None
        for number, case in enumerate(rule.cases):
            for argument in case.when:
                if known is not None and argument not in known:
                    message = f'`{name}` has no argument `{argument}`, so the strictest case applies to every call'
                    yield _warning((*at_rule, number, 'when', argument), message)
            if name in SHELL_TOOLS and case.approval == 'none':
                message = 'a condition on the text of a command also holds for what is added to it, such as `; rm -r .`'
                yield _warning((*at_rule, number), f'{message}; write a rule under `shell.rules` instead')


def _unused(settings: Settings) -> Iterator[ConfigFinding]:
    rules = settings.policy_config.tools.values()
    used = {name for rule in rules for name in (rule.approvers, *(case.approvers for case in rule.cases))}
    used |= {rule.escalate.to for rule in settings.approvers.values() if rule.escalate is not None}
    for name in settings.approvers:
        if name not in used:
            yield _warning(('approvers', name), f'no rule names `{name}`; remove it, or name it under `tools`')


def _offers(settings: Settings) -> Iterator[ConfigFinding]:
    for tool in FILE_TOOLS:
        arguments = signature(getattr(FileTools, tool)).parameters
        try:
            check_offers(settings.policy_config.tools, tool, list(arguments), source=None, line_of=lambda path: None)
        except ApprovalConfigError as error:
            found = _mistake(error)
            yield replace(found, path=('custom_tools' if tool in settings.custom_tools else 'tools', *found.path[1:]))


def _never_wins(name: str, other: str, config: PolicyConfig) -> bool:
    """Return whether `other` always takes precedence over `name`. If `other` has `?` or `[...]`, return `False`."""
    if other == name or config.tools[name].approval is None or re.search(r'[?\[]', other) or '*' not in other:
        return False
    if config.tools[other].cases:  # its strictest case does not always apply
        return False
    # Read the wildcards in `name` as plain text: if the stars of `other` match it, `other` matches whatever `name`
    # does.
    if re.fullmatch('.*'.join(map(re.escape, other.split('*'))), name, re.DOTALL) is None:
        return False
    both = ToolRules({each: config.tools[each] for each in (name, other)})
    example = re.sub(r'\[!?(.)[^\]]*\]', r'\1', name).replace('*', '').replace('?', 'x')
    return both.find(example).decided_by == other


def _roots(sandbox: FileSandbox) -> Iterator[ConfigFinding]:
    roots = sandbox.roots.all
    for root in roots:
        path = ('sandbox', 'paths', root.name, 'root')
        if root.identity is None:
            yield _warning(path, 'the directory does not exist; create it before an agent starts')
        elif not root.place.is_dir() or root.place.is_symlink():
            yield _warning(path, 'the path is not a directory, so no file in it can be used')
        for outer in roots:
            if outer is not root and starts_with(root.names, outer.names):
                message = f'this root is inside the root `{outer.name}`; only the rules of this root apply to its files'
                yield ConfigFinding(level='note', path=path, message=message)


def _toolchains(settings: Settings, sandbox: FileSandbox) -> Iterator[ConfigFinding]:
    roots = [str(root.place) for root in sandbox.roots.all]
    for at, folder in enumerate(settings.sandbox.toolchains if settings.sandbox is not None else ()):
        problem = configured_problem(folder, roots=roots)
        if problem is not None:
            yield _warning(('sandbox', 'toolchains', at), f'commands cannot use this toolchain: {problem}')


def _globs(settings: Settings) -> Iterator[ConfigFinding]:
    sandbox = settings.sandbox
    for key, globs in () if sandbox is None else (('hidden', sandbox.hidden), ('visible', sandbox.visible)):
        for at, glob in enumerate(globs):
            if (problem := glob_problem(glob)) is not None:
                yield _warning(('sandbox', key, at), f'`{glob}`: {problem}')


def _shadowed(settings: Settings, held: Settings) -> Iterator[ConfigFinding]:
    if settings.shell is None or held.shell is None:
        return
    book = RuleBook(held.shell)
    first = len(book.rules) - len(settings.shell.rules)  # after the rules of presets
    for rule in book.rules[first:]:
        words = [fixed(word) for word in rule.words]
        decided = book.find(words, lambda other, at=rule.index: other.index == at).decided
        if decided is not None and decided.index < rule.index:
            does = _does(decided)
            ending = 'remove this rule' if does == _does(rule) else 'move this rule up'
            other = f'the rule `{decided.rule.pattern}`'
            if isinstance(decided.rule, PresetRule):
                other, ending = decided.rule.shown, 'remove this rule'
            message = f'`{rule.rule.pattern}` never applies: {other} matches first and {does}; {ending}'
            yield _warning(('shell', 'rules', rule.index - first), message)


def _does(rule: CompiledRule) -> str:
    return 'blocks' if not rule.rule.allowed else 'requires approval' if rule.rule.approval else 'allows the command'


def _failing(rule: ShellRule, network: bool, paths: Mapping[str, PathConfig]) -> str | None:
    """Describe access that a rule allows but the OS sandbox grants only after approval, or return `None`."""
    words = [fixed(word) for word in rule.words]
    needs = needed_access(words)
    if 'network' in needs and not network:
        return 'uses the network'
    if 'git' in needs:
        return 'writes to `.git`'
    writes = written_paths(words) is not None
    asks = all(path.write_approval for path in paths.values())
    return 'changes files (every root requires approval for changes)' if writes and asks else None


def _pre_approved(settings: Settings, judge: CallJudge) -> Iterator[ConfigFinding]:
    shell, held = settings.shell, expanded(settings).shell
    if shell is None or held is None:
        return
    paths = judge.files.config.paths
    writable = ', '.join(f'`{name}`' for name, path in paths.items() if path.mode == 'rw')
    unasked = [(at, rule) for at, rule in enumerate(shell.rules) if rule.allowed and not rule.approval]
    for at, rule in unasked:
        path, about = ('shell', 'rules', at), f'`{rule.pattern}`'
        if writable and runs_files(rule.words):
            what = f'{about} runs files that an agent may have written in {writable}'
            message = f'{what}; set `approval: true`, or rely on the OS sandbox alone'
            yield ConfigFinding(level='warning', path=path, message=message, about=about)
        if rule.arguments != 'any' and entries().program(rule.words[0]) is None:
            message = f'`{rule.words[0]}` is an unknown program; to allow further arguments, set `arguments: any`'
            yield ConfigFinding(level='note', path=path, message=message, about=f'`{rule.words[0]}`')
        what = _failing(rule, shell.network, paths)
        if what is not None:
            message = f'{about} asks if it {what}, because no command has that access without approval'
            yield ConfigFinding(level='note', path=path, message=message, about=about)
    is_open = held.default.allowed and not held.default.approval
    if shell.network and (is_open or unasked):
        yield _warning(('shell', 'network'), 'commands can use the network without approval unless `network` is false')


def _outside(settings: Settings) -> Iterator[ConfigFinding]:
    for at, pattern in enumerate(settings.shell.host if settings.shell is not None else ()):
        path, about = ('shell', 'host', at), f'`{pattern}`'
        message = f'{about} may run outside of the OS sandbox, as you, each time you approve it'
        yield ConfigFinding(level='note', path=path, message=message, about=about)
        if not pattern.startswith('git ') and runs_files(pattern.split()):
            message = f'{about} runs files that an agent may have written, and no question shows what is in them'
            yield ConfigFinding(level='warning', path=path, message=message, about=about)


def unasked_commands(settings: Settings) -> dict[str, list[str]]:
    """Return patterns of commands that rules of the file let run without approval, by condition."""
    found: dict[str, list[str]] = {}
    for rule in settings.shell.rules if settings.shell is not None else ():
        if not rule.allowed or rule.approval:
            continue
        limit = f', within {", ".join(rule.sandbox_paths)}' if rule.sandbox_paths else ''
        any_arguments = ', with any arguments' if rule.arguments == 'any' else ''
        found.setdefault(f'{any_arguments}{limit}', []).append(f'`{rule.pattern}`')
    return found


def _warning(path: Path, message: str) -> ConfigFinding:
    return ConfigFinding(level='warning', path=path, message=message)


def worst(findings: Sequence[ConfigFinding]) -> Literal['error', 'warning', 'note'] | None:
    """Return the most severe level among the findings, or `None` if there are none."""
    levels: Final = ('error', 'warning', 'note')
    return next((level for level in levels if any(each.level == level for each in findings)), None)


def runs_files(pattern: Sequence[str]) -> bool:
    """Whether commands with these first words execute files of the project, such as tests, scripts, build files or
    hooks.

    A program outside of the system directories is treated as a file of the project.
    """
    if trusted_name(pattern[0]) is None:
        return True
    entry = label([fixed(word) for word in pattern]).entry
    covered = () if entry is None else (entry, *entries().below(entry))
    # git commands that only read the repository run no hooks.
    runs = (each for each in covered if not each.name.startswith('git') or 'writes' in each.flags)
    name = guarded_name(pattern[0])
    is_named = is_shell(name) or name in INTERPRETERS or name in RUN_PROJECTS
    return is_named or any('runs_files' in each.flags for each in runs)

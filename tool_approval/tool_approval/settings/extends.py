"""Add presets to settings. A preset contains rules and directories, and comes with the package."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

from tool_approval.core.config import parse_document
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellRule

from .model import PathSettings, PresetName, SandboxSettings, Settings, read_settings

_MARKS: Final[dict[PresetName, tuple[str, ...]]] = {
    'python': ('pyproject.toml', 'setup.py', 'setup.cfg', 'requirements.txt', 'tox.ini'),
    'node': ('package.json',),
    'rust': ('Cargo.toml',),
    'go': ('go.mod',),
    'git': ('.git',),
}
"""Maps a preset to the files that identify a project of its kind."""


class PresetRule(ShellRule):
    """A shell rule that comes from a preset."""

    preset: PresetName
    """Name of the preset."""
    line: int
    """1-based line number of the rule in the preset's file."""

    @property
    def shown(self) -> str:
        """Text that describes the rule in messages. The text contains the rule's pattern, preset and line."""
        condition = ', valid only with an OS sandbox' if self.pre_approves else ''
        return f'the rule `{self.pattern}` of the preset `{self.preset}` (line {self.line}{condition})'

    @property
    def pre_approves(self) -> bool:
        """Whether the rule lets commands run without approval."""
        return self.allowed and not self.approval


class PresetPath(PathSettings):
    """A directory that comes from a preset."""

    preset: PresetName
    """Name of the preset."""


@lru_cache
def read_preset(name: PresetName) -> Settings:
    """Return the settings of a preset. Only the directories and shell rules of a preset are used.

    Raises:
        MissingExtraError: PyYAML is not installed.
    """
    from importlib.resources import files  # imported late, as it takes longer than the rest of this module

    text = files('tool_approval.settings').joinpath('presets', f'{name}.yaml').read_text(encoding='utf-8')
    document, line_of = parse_document(text, source=f'{name}.yaml')
    settings = read_settings(document, source=f'{name}.yaml', line_of=line_of)
    rules = settings.shell.rules if settings.shell is not None else ()
    paths = settings.sandbox.paths if settings.sandbox is not None else {}
    return Settings(
        sandbox=SandboxSettings(
            paths={key: PresetPath(**path.model_dump(exclude_unset=True), preset=name) for key, path in paths.items()}
        ),
        shell=ShellConfig(
            rules=tuple(
                PresetRule(**rule.model_dump(), preset=name, line=line_of(('shell', 'rules', at)) or 0)
                for at, rule in enumerate(rules)
            )
        ),
    )


def expand(settings: Settings) -> Settings:
    """Return the settings together with the content of the presets that they extend.

    - The presets' rules that block commands come first, then the settings' rules, then the presets' other rules.
    - A preset's directory is added unless the settings have an entry for it. Such an entry also applies to the
      preset's rules. It becomes read-only if the preset's entry is read-only.

    Raises:
        ApprovalConfigError: A preset and the settings use the same name for two directories.
        MissingExtraError: PyYAML is not installed.
    """
    sandbox = settings.sandbox or SandboxSettings()
    shell = settings.shell or ShellConfig()
    paths = dict(sandbox.paths)
    rules: list[ShellRule] = []
    for preset in map(read_preset, dict.fromkeys(settings.extends)):
        assert preset.sandbox is not None and preset.shell is not None, 'a preset has both'
        names = {name: _add(paths, name, path) for name, path in preset.sandbox.paths.items()}
        rules += (
            rule.model_copy(update={'sandbox_paths': tuple(names[name] for name in rule.sandbox_paths)})
            for rule in preset.shell.rules
        )
    blocks = [rule for rule in rules if not rule.allowed]
    others = [rule for rule in rules if rule.allowed]
    return settings.model_copy(
        update={
            'extends': (),
            'sandbox': sandbox.model_copy(update={'paths': paths}),
            'shell': shell.model_copy(update={'rules': (*blocks, *shell.rules, *others)}),
        }
    )


def _add(paths: dict[str, PathSettings], name: str, path: PathSettings) -> str:
    """Add a preset's directory to `paths`, and return the name of the directory's entry."""
    place = os.path.normpath(path.root)
    known = next((key for key, each in paths.items() if os.path.normpath(each.root) == place), None)
    if known is None and name in paths:
        raise ApprovalConfigError(
            f'a preset uses `{name}` for the directory `{place}`; choose another name here',
            key=f'sandbox.paths.{name}',
        )
    if known is None:
        paths[name] = path
    elif path.mode == 'ro':
        paths[known] = paths[known].model_copy(update={'mode': 'ro'})
    return known or name


def unconfined(settings: Settings, *, keeps_rules: bool = False) -> Settings:
    """Return the expanded settings for machines without bubblewrap: commands that no rule names require approval.

    Args:
        settings: The expanded settings.
        keeps_rules: Whether to keep presets' rules that pre-approve commands.
    """
    shell = settings.shell
    if shell is None:
        return settings
    rules = tuple(
        rule for rule in shell.rules if keeps_rules or not (isinstance(rule, PresetRule) and rule.pre_approves)
    )
    default = shell.default.model_copy(update={'approval': True})
    return settings.model_copy(update={'shell': shell.model_copy(update={'rules': rules, 'default': default})})


def found_presets(directory: Path) -> dict[PresetName, str]:
    """Return the presets that fit a directory, each with the file name that indicates it. `default` is left out."""
    found: dict[PresetName, str] = {}
    for preset, names in _MARKS.items():
        name = next((name for name in names if os.path.lexists(directory / name)), None)
        if name is not None:
            found[preset] = name
    return found

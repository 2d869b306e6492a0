"""Add presets to settings. A preset contains rules and directories, and comes with the package."""

from __future__ import annotations

import os
from functools import lru_cache

from tool_approval.core.config import parse_document
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellRule

from .model import PathSettings, PresetName, SandboxSettings, Settings, read_settings


class PresetRule(ShellRule):
    """A shell rule that comes from a preset."""

    preset: PresetName
    """Name of the preset."""
    line: int
    """1-based line number of the rule in the preset's file."""

    @property
    def shown(self) -> str:
        """Text that describes the rule in messages. The text contains the rule's pattern, preset and line."""
        return f'the rule `{self.pattern}` of the preset `{self.preset}` (line {self.line})'


class PresetPath(PathSettings):
    """A directory that comes from a preset."""

    preset: PresetName
    """Name of the preset."""


@lru_cache
def read_preset(name: PresetName) -> Settings:
    """Return the settings of a preset. Only its directories, its shell rules and its `shell.default` are used.

    Raises:
        MissingExtraError: PyYAML is not installed.
    """
    from importlib.resources import files  # imported late, as it takes longer than the rest of this module

    text = files('tool_approval.settings').joinpath('presets', f'{name}.yaml').read_text(encoding='utf-8')
    document, line_of = parse_document(text, source=f'{name}.yaml')
    settings = read_settings(document, source=f'{name}.yaml', line_of=line_of)
    assert settings.sandbox is not None and settings.shell is not None, 'a preset has both'
    rules, paths = settings.shell.rules, settings.sandbox.paths
    return Settings(
        sandbox=SandboxSettings(
            paths={key: PresetPath(**path.model_dump(exclude_unset=True), preset=name) for key, path in paths.items()}
        ),
        shell=ShellConfig(
            default=settings.shell.default,
            rules=tuple(
                PresetRule(**rule.model_dump(), preset=name, line=line_of(('shell', 'rules', at)) or 0)
                for at, rule in enumerate(rules)
            ),
        ),
    )


def expand(settings: Settings) -> Settings:
    """Return the settings together with the content of the presets that they extend.

    - The presets' rules come before the settings' rules: they only block commands.
    - `shell.default` of the last preset applies unless the settings have one.
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
    default = shell.default
    for preset in map(read_preset, dict.fromkeys(settings.extends)):
        assert preset.sandbox is not None and preset.shell is not None, 'a preset has both'
        for name, path in preset.sandbox.paths.items():
            _add(paths, name, path)
        rules += preset.shell.rules
        if 'default' not in shell.model_fields_set:
            default = preset.shell.default
    return settings.model_copy(
        update={
            'extends': (),
            'sandbox': sandbox.model_copy(update={'paths': paths}),
            'shell': shell.model_copy(update={'rules': (*rules, *shell.rules), 'default': default}),
        }
    )


def _add(paths: dict[str, PathSettings], name: str, path: PathSettings) -> None:
    """Add a preset's directory to `paths`, unless they have an entry for it."""
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


def unconfined(settings: Settings) -> Settings:
    """Return the expanded settings for machines without bubblewrap: commands that no rule names require approval."""
    shell = settings.shell
    if shell is None:
        return settings
    default = shell.default.model_copy(update={'approval': True})
    return settings.model_copy(update={'shell': shell.model_copy(update={'default': default})})

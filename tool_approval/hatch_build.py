"""Combine the data about shell programs into one file, which loads much faster than the source files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = 'tool_approval/tools/shell/programs'


class ProgramsHook(BuildHookInterface):
    """Writes `programs.json`, except for editable installations, where the file would hide changes to the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to the distribution."""
        if version == 'editable':
            return
        entries: dict[str, Any] = {}
        for path in sorted(Path(self.root, SOURCES).glob('*.toml')):
            entries.update(tomllib.loads(path.read_text(encoding='utf-8')))
        for fields in entries.values():
            fields.pop('allowed', None)
            fields.pop('asked', None)
        built = Path(self.directory, 'programs.json')
        built.parent.mkdir(parents=True, exist_ok=True)
        built.write_text(json.dumps(entries, separators=(',', ':')))
        build_data['force_include'][str(built)] = f'{SOURCES}/programs.json'

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file from the build directory."""
        Path(self.directory, 'programs.json').unlink(missing_ok=True)

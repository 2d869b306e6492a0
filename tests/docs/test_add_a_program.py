"""The page about the shell's data describes every field that the data uses."""

import re
import tomllib
from pathlib import Path

from tool_approval.tools.shell import __file__ as shell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / 'docs' / 'reference' / 'program-data.md'


def test_every_field_of_the_data_is_described():
    described = set[str]()
    for line in PAGE.read_text(encoding='utf-8').splitlines():
        if line.startswith('| `'):
            described |= set(re.findall('`([a-z_]+)`', line.split('|')[1]))
    used = {
        field
        for path in (Path(shell).parent / 'programs').glob('*.toml')
        for entry in tomllib.loads(path.read_text(encoding='utf-8')).values()
        for field in entry
    }
    assert len(used) > 20
    assert used <= described

from pathlib import Path

import pytest

from maintainers import budget


def test_each_part_is_reported_with_its_modules_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, 'PARTS', {'core': ('tool_approval/core',), 'together': ('loop', 'tool_approval')})
    for path, text in {'tool_approval/core/a.py': 'a\nb\nc\n', 'loop/b.py': 'd\n', 'loop/c.txt': 'e\n'}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    table = budget.report(tmp_path)

    assert [line.split() for line in table[1:]] == [['core', '1', '3'], ['together', '2', '4']]

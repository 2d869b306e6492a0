from pathlib import Path

import pytest

from maintainers import budget


def test_each_part_is_reported_with_its_modules_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, 'PARTS', {'core': ('tool_approval/core',), 'together': ('loop', 'tool_approval')})
    for path, text in {'tool_approval/core/a.py': 'a\nb\nc\n', 'loop/b.py': 'd\n', 'loop/c.txt': 'e\n'}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    (tmp_path / 'docs').mkdir()
    (tmp_path / 'docs' / 'page.md').write_text('word ' * 1_501)

    _, *parts, _, words = budget.report(tmp_path)

    assert [line.split() for line in parts] == [['core', '1', '3'], ['together', '2', '4']]
    assert words == 'documentation: 1 pages, 1,501 words, 1 longer than 1,500 words'


def test_what_an_approved_call_passes_through_is_counted():
    words = budget.approved_call().split()

    functions, modules, encodings, judgements = (int(word) for word in words if word.isdigit())
    assert functions > modules > encodings > judgements == 2

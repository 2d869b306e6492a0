from pathlib import Path

import pytest

from maintainers import budget


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(budget, 'PARTS', (budget.Part('core', 3, ('tool_approval/core',)),))
    monkeypatch.setattr(budget, 'LINES', 5)
    monkeypatch.setattr(budget, 'MODULES', 2)
    for path, text in {'tool_approval/core/a.py': 'a\nb\nc\n', 'pydantic_ai_slim/b.py': 'd\n'}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_tree_within_the_budget_passes(root: Path):
    table, exceeded = budget.report(root)

    assert [line.split() for line in table[1:]] == [['core', '1', '3', '3'], ['together', '2', '4', '5']]
    assert exceeded == []


@pytest.mark.parametrize(
    ('path', 'text', 'problems'),
    [
        ('tool_approval/core/a.py', 'a\n' * 4, ['core: 1 lines too many']),
        ('pydantic_ai_slim/b.py', 'd\n' * 3, ['together: 1 lines too many']),
        ('pydantic_ai_slim/c.py', '', ['together: 1 modules too many']),
    ],
)
def test_a_budget_that_is_exceeded_is_named(root: Path, path: str, text: str, problems: list[str]):
    (root / path).write_text(text)

    assert budget.report(root)[1] == problems

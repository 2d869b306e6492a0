from pathlib import Path

import pytest

from maintainers import prose


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / 'maintainers').mkdir()
    (tmp_path / 'tool_approval').mkdir()
    for name in ('prose-allowed.txt', 'prose-baseline.txt'):
        (tmp_path / 'maintainers' / name).write_text('')
    return tmp_path


def findings(path: Path, text: str, *allowed: str) -> list[str]:
    path.write_text(text)
    return [finding.rpartition(': ')[2] for finding in prose.findings(path, frozenset(allowed))]


@pytest.mark.parametrize(
    'sentence',
    [
        'The value lies in a file.',
        'The names stand in the list.',
        'No rule is about the call.',
        'What is found is shown.',
        'Who may answer may cancel.',
        'Nobody is asked.',
        'The model is told why.',
        'The hook tells the host.',
        'A denial is no exception.',
        'The order is its own affair.',
        'A program of which nothing is known asks.',
    ],
)
def test_wording_to_avoid_is_found_in_pages_and_modules(tmp_path: Path, sentence: str):
    assert findings(tmp_path / 'page.md', f'Fine. {sentence}\n\n- {sentence}\n\n| a | {sentence} |\n') == [sentence] * 3
    assert findings(tmp_path / 'docstring.py', f'def f():\n    """Fine.\n\n    {sentence}\n    """\n') == [sentence]
    assert findings(tmp_path / 'comment.py', f'x = 1  # {sentence}\n') == [sentence]
    assert findings(tmp_path / 'message.py', f'error = f"{{1}}: {sentence}"\n') == [sentence]


@pytest.mark.parametrize(
    'text',
    [
        '# What is found\n\nA file.',
        'What is found?',
        'It prints `nobody`.',
        '```text\nNobody.\n```',
        '`TestModel` stands in for a model.',
        'It is about 20 % faster, and there is no limit.',
        'The call is about to run.',
    ],
)
def test_plain_wording_and_code_pass(tmp_path: Path, text: str):
    assert findings(tmp_path / 'page.md', text) == []


def test_an_allowed_sentence_passes(tmp_path: Path):
    assert findings(tmp_path / 'page.md', 'Nobody knows. Nobody cares.', 'Nobody knows.') == ['Nobody cares.']


def test_a_module_starts_with_what_it_does(tmp_path: Path):
    text = 'From a call to its request.'

    assert findings(tmp_path / 'first.py', f'"""{text}"""\n') == [text]
    assert findings(tmp_path / 'later.py', f'"""Build requests.\n\n{text}\n"""\n') == []


def test_more_than_the_baseline_fails(root: Path, capsys: pytest.CaptureFixture[str]):
    (root / 'tool_approval' / 'a.py').write_text('"""Nobody knows. Nobody cares."""\n')
    (root / 'maintainers' / 'prose-baseline.txt').write_text('1 tool_approval/a.py\n')

    assert prose.main([], root) == 1
    assert 'tool_approval/a.py: 2 findings, at most 1:' in capsys.readouterr().out


def test_a_module_that_the_baseline_does_not_name_has_none(root: Path):
    (root / 'tool_approval' / 'a.py').write_text('"""Nobody knows."""\n')

    assert prose.main([], root) == 1


@pytest.mark.parametrize('folder', ['pydantic_ai_slim', 'examples', 'benchmarks', 'maintainers'])
def test_modules_of_each_folder_are_checked(root: Path, folder: str):
    (root / folder / 'inner').mkdir(parents=True)
    (root / folder / 'inner' / 'a.py').write_text('"""Nobody knows."""\n')

    assert prose.main([], root) == 1


def test_the_modules_that_quote_bad_wording_are_not_checked(root: Path):
    (root / 'maintainers' / 'prose.py').write_text('"""Nobody knows."""\n')

    assert prose.main([], root) == 0


def test_a_page_has_none_whatever_the_baseline_says(root: Path):
    (root / 'README.md').write_text('Nobody knows.\n')
    (root / 'maintainers' / 'prose-baseline.txt').write_text('1 README.md\n')

    assert prose.main([], root) == 1


def test_the_baseline_falls_and_does_not_rise(root: Path):
    baseline = root / 'maintainers' / 'prose-baseline.txt'
    baseline.write_text('3 tool_approval/a.py\n1 tool_approval/b.py\n2 tool_approval/gone.py\n')
    for name in ('a.py', 'b.py'):
        (root / 'tool_approval' / name).write_text('"""Nobody knows. Nobody cares."""\n')

    assert prose.main(['--lower'], root) == 1
    assert baseline.read_text() == '2 tool_approval/a.py\n1 tool_approval/b.py\n'


def test_a_baseline_that_holds_passes(root: Path):
    (root / 'tool_approval' / 'a.py').write_text('"""Nobody knows."""\n')
    (root / 'CHANGELOG.md').write_text('Nobody knows.\n')
    (root / 'maintainers' / 'prose-baseline.txt').write_text('2 tool_approval/a.py\n')

    assert prose.main([], root) == 0

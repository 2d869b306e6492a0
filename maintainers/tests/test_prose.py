from pathlib import Path

import pytest

from maintainers import prose


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / 'maintainers').mkdir()
    (tmp_path / 'tool_approval').mkdir()
    (tmp_path / 'maintainers' / 'prose-allowed.txt').write_text('Nobody cares.\n')
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


def test_findings_are_printed_with_their_file(root: Path, capsys: pytest.CaptureFixture[str]):
    (root / 'README.md').write_text('Nobody knows. Nobody cares.\n')
    (root / 'tool_approval' / 'a.py').write_text('"""Nobody knows. Nobody cares."""\n')

    assert prose.main([], root) == 1
    assert capsys.readouterr().out.splitlines() == [
        'README.md: "somebody" or "nobody" for a role: Nobody knows.',
        'tool_approval/a.py: "somebody" or "nobody" for a role: Nobody knows.',
        '2 sentences to put plainly',
    ]


@pytest.mark.parametrize('folder', ['pydantic_ai_slim', 'examples', 'benchmarks', 'maintainers'])
def test_modules_of_each_folder_are_checked(root: Path, folder: str):
    (root / folder / 'inner').mkdir(parents=True)
    (root / folder / 'inner' / 'a.py').write_text('"""Nobody knows."""\n')

    assert prose.main([], root) == 1


def test_the_modules_that_quote_bad_wording_are_not_checked(root: Path):
    (root / 'maintainers' / 'prose.py').write_text('"""Nobody knows."""\n')

    assert prose.main([], root) == 0


def test_a_sample_has_whole_sentences_of_pages_docstrings_and_messages(root: Path, capsys: pytest.CaptureFixture[str]):
    (root / 'CHANGELOG.md').write_text(
        '# A heading of at least five words\n\n- A call that waits needs no `a. b | c`,\n  or a process.\n'
    )
    (root / 'tool_approval' / 'a.py').write_text(
        '"""Too short.\n\nThe docstring of this module has\ntwo lines."""\n'
        "error = f'the file {path} cannot be read'\nquery = 'SELECT state FROM requests WHERE id = ?'\n"
        "part = 'AND NOT EXISTS (SELECT 1)'\nprofile = '(deny file-write-create file-write-unlink (literal x))'\n"
        'script = \'cat $(which "$1") one two three\'\nrow = f\'{name} {", ".join(each for each in parts)}\'\n'
    )

    assert prose.main(['--sample', '1'], root) == 0
    assert capsys.readouterr().out.splitlines() == [
        'pages, 1 of 1:',
        'CHANGELOG.md: A call that waits needs no `a. b | c`, or a process.',
        'docstrings, 1 of 1:',
        'tool_approval/a.py: The docstring of this module has two lines.',
        'messages, 1 of 1:',
        'tool_approval/a.py: the file `path` cannot be read',
    ]


def test_a_seed_draws_the_same_sample_again(root: Path, capsys: pytest.CaptureFixture[str]):
    (root / 'README.md').write_text(''.join(f'{number} is the number of this line.\n' for number in range(100)))
    drawn: list[str] = []
    for seed in ('1', '1', '2'):
        prose.main(['--sample', seed], root)
        drawn.append(capsys.readouterr().out)

    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0].splitlines())) == 23

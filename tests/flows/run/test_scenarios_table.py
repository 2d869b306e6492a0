"""The first attempts of a new user: questions and results with the OS sandbox on.

A prompt of several pasted lines and Ctrl-C need no sandbox; they are tested in `test_stories.py`
(`test_lines_that_are_pasted_are_one_message`, and the tests whose names begin with `test_ctrl_c_`).
"""

from pathlib import Path

import pytest

from .scenario import Scenario, call, shell
from .test_scenarios import SHOP
from .test_scenarios_tools import ACTIVE

NETWORK = 'extra access: network'
DOWNLOADS = ('curl --silent http://203.0.113.1/', 'pip install --retries 0 greeting', 'npm ci')


def settings(tmp_path: Path, text: str) -> tuple[str, str]:
    """The options for a settings file with this text."""
    path = tmp_path / 'mine.yaml'
    path.write_text(text)
    return '--config', str(path)


def test_git_add_and_commit(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    scenario.write({'new.py': 'import shop\n'})

    scenario.play(
        'Commit it.',
        shell('git add -A'),
        shell('git commit -q -m "Add a file"'),
        questions=[('extra access: writes to .git', 'y'), ('extra access: writes to .git', 'y')],
    )

    assert scenario.git('show', '--format=%s', '--name-only') == 'Add a file\n\nnew.py\n'


def test_the_question_about_a_download_says_that_it_opens_the_network(scenario: Scenario) -> None:
    scenario.repository(SHOP)

    results = scenario.play(
        'Download it.',
        *[shell(command) for command in DOWNLOADS],
        questions=[(NETWORK, 'n')] * len(DOWNLOADS),
    )

    assert all('denied' in result for result in results)


def test_a_download_that_a_rule_allows_asks_for_the_network(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository({**SHOP, 'package.json': '{"dependencies": {"greeting": "1.0"}}'})
    rules = ', '.join(f'{{pattern: {program}, approval: false}}' for program in ('curl', 'pip install', 'npm ci'))

    results = scenario.play(
        'Download it.',
        *[shell(command) for command in DOWNLOADS],
        questions=[(NETWORK, 'n')] * len(DOWNLOADS),
        options=settings(tmp_path, f'extends: [default]\nshell: {{rules: [{rules}]}}\n'),
        environment=ACTIVE,
    )

    assert all('denied' in result for result in results)


def test_the_tests_of_a_project_run_in_the_environment_of_the_readme(scenario: Scenario) -> None:
    scenario.repository({**SHOP, 'shop.py': 'def greet(name):\n    return f"Hello, {name}!"\n'})

    results = scenario.play(
        'Test it.',
        shell('python -m pytest -q'),
        environment=ACTIVE,
    )

    assert '1 passed' in results[0]


@pytest.mark.parametrize('answers', ['person', 'mode'])
def test_without_settings_files_are_made_and_removed(scenario: Scenario, answers: str) -> None:
    scenario.write({'junk.txt': 'junk\n'})
    questions = [('$ rm -f junk.txt', 'y'), ('$ touch a', 'y')] if answers == 'person' else []

    results = scenario.play(
        'Tidy up.',
        shell('rm -f junk.txt'),
        shell('touch a'),
        questions=questions,
        options=[] if questions else ['--approve-all'],
    )

    assert results == ['[no output]', '[no output]']
    assert [path.name for path in scenario.path.iterdir()] == ['a']


def test_a_settings_file_that_extends_the_defaults_reads_freely(scenario: Scenario, tmp_path: Path) -> None:
    scenario.repository(SHOP)

    results = scenario.play(
        'Look at it.',
        shell('ls'),
        shell('cat shop.py'),
        shell('grep -n greet shop.py'),
        shell('git log --oneline'),
        shell('python --version'),
        call('read_file', path='shop.py'),
        options=settings(tmp_path, 'extends: [default]\n'),
        environment=ACTIVE,
    )

    assert not any('exit status' in result for result in results)
    assert results[1] == SHOP['shop.py'].rstrip()


def test_a_secret_is_absent_for_commands_and_a_question_for_the_file_tools(scenario: Scenario) -> None:
    scenario.repository({**SHOP, '.gitignore': '.env\n'})
    scenario.write({'.env': 'TOKEN=hunter2\n'})

    results = scenario.play(
        'What is the token?',
        shell('cat .env'),
        shell('grep -r TOKEN .'),
        call('read_file', path='.env'),
        questions=[('╭─ read_file', 'n')],
    )

    assert 'hunter2' not in str(scenario.talk.server.requests)
    assert 'exit status' in results[0]
    assert 'denied' in results[2]


def test_a_rule_of_a_root_holds_in_a_root_within(scenario: Scenario, tmp_path: Path) -> None:
    scenario.write({'src/a.py': 'a = 1\n', 'b.py': 'b = 2\n'})
    text = (
        'sandbox: {paths: {project: {root: ., mode: rw}, source: {root: src, mode: rw}}}\n'
        'shell: {rules: [{pattern: cat, approval: false, sandbox_paths: [project]}]}\n'
    )

    results = scenario.play('Look.', shell('cat src/a.py b.py'), options=settings(tmp_path, text))

    assert results == ['a = 1\nb = 2']


@pytest.mark.parametrize(
    'command, other',
    [
        ('mkdir made', 'mkdir other'),
        ('touch made', 'touch other'),
    ],
)
def test_for_this_session_covers_a_command_with_other_operands(scenario: Scenario, command: str, other: str) -> None:
    scenario.repository({**SHOP, 'shop.py': 'def greet(name):\n    return f"Hello, {name}!"\n'})

    results = scenario.play(
        'Do both.', shell(command), shell(other), questions=[(f'$ {command}', 's')], environment=ACTIVE
    )

    assert not any('exit status' in result for result in results)

"""A day with an agent: how often the person is asked, and whether what the person approved works."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.approval.settings.outside import serving
from tests.flows.terminal.screen import Screen

from .day import FILES, day
from .scenario import HIDDEN_CURSOR, Scenario
from .server import ModelServer, Step
from .test_init import COMMAND as INIT
from .test_scenarios_tools import make_environment, make_index, served

AGAIN = re.compile(r'Call again with access=(\[[^\]]*\])')
CALLS = 105
PAGE = Path(__file__).parents[3] / 'docs' / 'explanation' / 'a-day.md'
BEFORE_EACH_CHANGE = Path(__file__).with_name('asked_before_each_change.txt')
"""The rows of the table for the other answer to `init`, of which the page has only the number."""
PUSHED = ('local', 'store')
GROUP = re.compile(r'\d+ requests: ')


class Model(list[Step]):
    """The steps of the model, which repeats a call with the access that its result names."""

    def __init__(self, server: ModelServer, steps: list[Step]) -> None:
        super().__init__(steps)
        self._server = server
        self._last: Step = {}
        self.results: list[tuple[dict[str, Any], str, bool]] = []
        """Each call, its result, and whether the call is repeated with access."""

    def pop(self, index: Any = 0) -> Step:
        calls = self._last.get('calls', [])
        told = self._server.told(-1, 'tool')[-len(calls) :] if calls else []
        found = AGAIN.search(told[-1]) if calls and 'access' not in calls[-1][1] else None
        self.results += [
            ({'tool': name, **args}, text, found is not None) for (name, args), text in zip(calls, told, strict=True)
        ]
        if found is None:
            self._last = super().pop(index)
        else:
            [[name, args]] = calls
            self._last = {'calls': [[name, {**args, 'access': json.loads(found[1].replace("'", '"'))}]]}
        return self._last


def is_asked(screen: Screen, since: int) -> bool:
    """Whether the person is asked, by a question that came after so much was sent."""
    is_new = HIDDEN_CURSOR in screen.sent[since:]
    return is_new and screen.is_ready and (screen.row.startswith('╰─ ') or GROUP.match(screen.row) is not None)


def answer(screen: Screen) -> tuple[str, str]:
    """Approve, for the session where this is offered. Return the extra access that was shown, and what it covers."""
    box = ''.join(screen.text.rpartition('╭─ ')[1:])
    kinds = re.findall(r'│ extra access: (.*?) *$', box, re.MULTILINE)
    # What else runs outside depends on the machine, such as helpers for credentials.
    access = ', '.join(kinds[:1] if kinds and 'OUTSIDE' in kinds[0] else kinds)
    group = GROUP.match(screen.row)
    if group is not None:
        screen.type('A')
        screen.wait_for('Press A once more')
        screen.type('A')
        return access, f'these {group[0].split()[0]} calls'
    covered = re.search(r' s (.*?) this session', screen.row)
    screen.type('y' if covered is None else 's')
    return access, 'this call' if covered is None else covered[1]


def rows_of(questions: list[tuple[str, str]], asked: list[dict[str, Any]]) -> list[str]:
    """Return the rows of a table: each question, the extra access, and what the answer covers."""
    rows: list[str] = []
    for access, covered in questions:
        together = int(covered.split()[1]) if covered.startswith('these ') else 1
        names = [shown(each) for each in asked[:together]]
        del asked[:together]
        rows.append(f'| {len(rows) + 1} | {" and ".join(names)} | {access or "none"} | {covered} |')
    assert asked == [], 'each question is in the log'
    return rows


def shown(entry: dict[str, Any]) -> str:
    payload = entry['payload']
    text = payload.get('command') or f'{entry["tool_name"]} {payload["path"]}'
    text = re.sub(r'127\.0\.0\.1([: ])\d+', r'127.0.0.1\1PORT', text.splitlines()[0]).replace('|', '\\|')
    return f'`{text}`'


def initialise(scenario: Scenario, changes: str) -> None:
    """Write the settings as `tool-approval init` does, and list the pushes that run outside of the sandbox."""
    talk = scenario.talk
    screen = Screen(INIT, scenario.path, columns=200, HOME=str(talk.home), XDG_STATE_HOME=str(talk.state))
    for question, answer in (('May every', ''), ('Ask: c', changes), ('Who approves', '')):
        screen.wait_for(question)
        screen.type(f'{answer}\r')
    screen.wait_for_question('Write ')
    screen.type('\r')
    assert screen.end() == 0, screen.scrolled
    screen.close()
    path = scenario.path / 'approvals.yaml'
    path.write_text(path.read_text().replace('  # host: [git push, git fetch]', '  host: [git push, git fetch]'))


@pytest.mark.thorough
@pytest.mark.parametrize(('changes', 'most'), [('s', 15), ('c', 30)])
def test_a_day_asks_little_and_what_was_approved_works(
    scenario: Scenario, tmp_path: Path, changes: str, most: int
) -> None:
    for program in ('curl', 'git', 'make', 'npm'):
        if not Path('/usr/bin', program).exists():
            pytest.skip(f'{program} is not installed below /usr; see make install-system')
    talk = scenario.talk
    scenario.repository(FILES)
    for branch, path, old, new in (
        ('feature', 'shop.py', 'Bye ', 'See you, '),
        ('topic', 'README.md', 'people', 'everybody'),
    ):
        scenario.git('checkout', '--quiet', '-b', branch, 'main')
        scenario.write({path: FILES[path].replace(old, new)})
        scenario.git('commit', '--quiet', '--all', f'--message=Change {path}')
    scenario.git('checkout', '--quiet', 'main')
    for name in ('local', 'store', 'served/shop'):
        scenario.git('clone', '--quiet', '--bare', '.', str(tmp_path / f'{name}.git'))
    scenario.git('--git-dir', str(tmp_path / 'store.git'), 'config', 'http.receivepack', 'true')
    scenario.git('--git-dir', str(tmp_path / 'served/shop.git'), 'update-server-info')
    make_index(tmp_path / 'served')
    make_environment(scenario.path / '.venv')
    (talk.home / '.gitconfig').write_text('[credential]\n\thelper = store\n')
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]

    with served(tmp_path / 'served') as index, serving(tmp_path) as remote:
        scenario.git('remote', 'add', 'local', str(tmp_path / 'local.git'))
        scenario.git('remote', 'add', 'web', remote)
        (talk.home / '.git-credentials').write_text(remote.replace('//', '//ann:s3cret@').removesuffix('/store.git'))
        initialise(scenario, changes)
        topics = day(index=index, port=port)
        steps = [step for _, calls in topics for step in (*({'calls': each} for each in calls), {'text': 'Done.'})]
        screen = talk.start(
            '--config',
            'approvals.yaml',
            steps=[],
            is_confined=True,
            columns=110,
            lines=50,
            VIRTUAL_ENV=f'{scenario.path}/.venv',
            PATH=f'{scenario.path}/.venv/bin:/usr/bin:/bin',
        )
        model = talk.server.steps = Model(talk.server, steps)
        questions: list[tuple[str, str]] = []
        for prompt, _ in topics:
            talk.say(prompt)
            since = len(screen.sent)
            while True:
                screen.wait(
                    lambda since=since: is_asked(screen, since) or screen.lines[-1:] == ['>'],
                    'a question, or the prompt',
                )
                if screen.lines[-1:] == ['>']:
                    break
                since = len(screen.sent)
                questions.append(answer(screen))
        assert talk.leave() == 0

    rows = rows_of(questions, talk.entries(event='question'))
    assert not model, f'the model has {len(model)} steps left'
    calls = [(call, text) for call, text, is_repeated in model.results if not is_repeated]
    assert len(calls) == CALLS
    failed = [(call, text) for call, text in calls if 'exit status' in text or 'denied' in text or AGAIN.search(text)]
    assert failed == []
    head = scenario.git('rev-parse', 'main')
    assert [scenario.git('--git-dir', str(tmp_path / f'{name}.git'), 'rev-parse', 'main') for name in PUSHED] == [
        head
    ] * 2
    assert scenario.git('log', '-1', '--format=%s') == 'Part in Italian\n'
    assert scenario.git('status', '--porcelain') == ''
    assert len(rows) <= most, rows
    page = PAGE if changes == 's' else BEFORE_EACH_CHANGE
    assert '\n'.join(rows) in page.read_text(), '\n'.join(rows)
    assert changes == 's' or f'Then {len(rows)} questions are asked' in PAGE.read_text()

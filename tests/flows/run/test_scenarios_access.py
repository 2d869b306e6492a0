"""Commands that need more than the OS sandbox gives: asked with the access that they need, or asked again with it."""

from collections.abc import Iterator

import pytest

from tests.hello import hello_server

from .scenario import Scenario, call, shell


def test_commit(scenario: Scenario) -> None:
    scenario.repository({'shop.py': 'greeting = "Hello"\n'})

    results = scenario.play(
        'Greet in French, and commit.',
        call('edit_file', path='shop.py', old_text='"Hello"', new_text='"Salut"'),
        shell('git commit -q -am "Greet in French"'),
        shell('git log --oneline'),
        questions=[('edit_file', 'y'), ('extra access', 'y')],
    )

    assert results[1] == '[no output]'
    assert 'Greet in French' in results[2]
    assert scenario.git('log', '--format=%an %s').splitlines() == ['Ada Greet in French', 'Ada Begin']
    assert scenario.git('status', '--short') == ''


def test_files_are_made_and_removed_where_there_is_no_settings_file(scenario: Scenario) -> None:
    scenario.write({'junk.txt': 'junk\n'})

    results = scenario.play(
        'Tidy up.',
        shell('rm -f junk.txt && touch a && mkdir b'),
        questions=[('$ rm -f junk.txt', 'y')],
    )

    assert results == ['[no output]']
    assert sorted(path.name for path in scenario.path.iterdir()) == ['a', 'b']


@pytest.fixture
def address() -> Iterator[str]:
    with hello_server() as address:
        yield address


def test_a_command_that_failed_goes_on_with_the_network(scenario: Scenario, address: str) -> None:
    scenario.write(
        {'fetch.py': f'import urllib.request\n\nprint(urllib.request.urlopen({address!r}).read().decode())\n'}
    )

    results = scenario.play(
        'Fetch it.',
        shell('/usr/bin/python3 fetch.py'),
        shell('/usr/bin/python3 fetch.py', access=['network']),
        shell(f'curl -sS {address}'),
        questions=[('the command may already have run and had effects', 'y')],
    )

    told = "[There was no network. Call again with access=['network']; the user is asked.]"
    assert told in results[0]
    assert results[1] == 'hello'
    # It could ask a server of this conversation.
    assert told in results[2]

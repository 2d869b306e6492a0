"""A developer's daily work with the OS sandbox on, and every question that it takes."""

from .scenario import Scenario, call, shell

SHOP = {
    'shop.py': 'def greet(name):\n    return "Hello " + name\n',
    'test_shop.py': 'from shop import greet\n\n\ndef test_greet():\n    assert greet("Ada") == "Hello, Ada!"\n',
    'run_tests.py': 'import test_shop\n\ntest_shop.test_greet()\nprint("1 passed")\n',
}


def test_read_edit_and_test(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    edit = call('edit_file', path='shop.py', old_text='"Hello " + name', new_text='f"Hello, {name}!"')

    results = scenario.play(
        'Mend the greeting, and test it.',
        call('read_file', path='shop.py'),
        edit,
        shell('/usr/bin/python3 run_tests.py'),
        shell('git diff --stat'),
        questions=[('╭─ edit_file', 'y')],
    )

    assert 'return "Hello " + name' in results[0]
    assert results[2] == '1 passed'
    assert 'shop.py | 2 +-' in results[3]
    assert scenario.git('diff', '--name-only') == 'shop.py\n'


def test_calls_of_one_response_run_in_its_order(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    edit = ['edit_file', {'path': 'shop.py', 'old_text': '"Hello " + name', 'new_text': 'f"Hello, {name}!"'}]
    look = [['read_file', {'path': 'shop.py'}], ['run_shell', {'command': 'cat shop.py'}]]

    results = scenario.play('Mend it.', {'calls': [look[0], edit, *look]}, questions=[('╭─ edit_file', 'y')])

    assert ['Hello, ' in result for result in results] == [False, False, True, True]
    assert [entry['tool_name'] for entry in scenario.talk.entries()] == ['edit_file']


def test_calls_after_a_denied_one_run(scenario: Scenario) -> None:
    scenario.repository(SHOP)
    calls = [['delete', {'path': 'shop.py'}], ['list_files', {'path': '.'}]]

    results = scenario.play('Look.', {'calls': calls}, questions=[('╭─ delete', 'n')])

    assert 'shop.py' in results[1]

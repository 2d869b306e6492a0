"""What a developer does all day, with the OS sandbox on, and every question that it takes."""

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
        questions=[('Approve edit_file?', 'y'), ('/usr/bin/python3 run_tests.py', 'y')],
    )

    assert 'return "Hello " + name' in results[0]
    assert results[2] == '1 passed'
    assert 'shop.py | 2 +-' in results[3]
    assert scenario.git('diff', '--name-only') == 'shop.py\n'

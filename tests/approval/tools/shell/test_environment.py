import pytest
from tool_approval.tools.shell.environment import LOCALE, clean_environment, is_harmless

from tests.tables import table


@pytest.mark.parametrize('name', ['TZ', 'NO_COLOR', 'COLUMNS'])
def test_a_variable_about_looks_is_harmless(name):
    assert is_harmless(name, is_exported=True)


@table(
    'name',
    ['PATH', 'LD_PRELOAD', 'GIT_DIR', 'PAGER', 'IFS', 'BASH_ENV', 'ENV', 'PS4', 'PYTHONPATH', 'LC_', 'http_proxy',
        'HOME',
     'npm_config_script_shell', 'histchars', 'FOO', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE'],
)  # fmt: skip
@table('is_exported', [True, False])
def test_any_other_may_change_what_runs(name, is_exported):
    assert not is_harmless(name, is_exported=is_exported)


def test_a_name_of_the_commands_own_is_harmless_until_it_is_exported():
    assert is_harmless('my_file', is_exported=False)
    assert not is_harmless('my_file', is_exported=True)


def test_secrets_and_variables_that_change_programs_are_left_out():
    given = {
        'API_TOKEN': 'a',
        'LD_PRELOAD': 'b',
        'BASH_ENV': 'c',
        'BASH_FUNC_ls%%': '() { a; }',
        'HOME': '/h',
        'LC_ALL': 'zh_CN.GBK',
        'LC_CTYPE': 'zh_CN.GBK',
        'LANG': 'zh_CN.GBK',
    }

    cleaned = clean_environment(given)

    assert cleaned.keys() == {'HOME', 'LC_ALL', 'PATH', 'PAGER', 'GIT_PAGER', 'GIT_TERMINAL_PROMPT', 'TERM'}
    assert cleaned['LC_ALL'] == LOCALE


def test_variables_for_certificates_and_listed_ones_are_kept():
    given = {'SSL_CERT_FILE': '/a', 'NODE_EXTRA_CA_CERTS': '/b', 'MINE': 'c', 'OTHER': 'd'}

    cleaned = clean_environment(given, names=('MINE',))

    assert {name: cleaned.get(name) for name in given} == {**given, 'OTHER': None}


def test_the_search_path_has_no_relative_part():
    assert clean_environment({'PATH': '.:/usr/bin::bin:/bin'})['PATH'] == '/usr/bin:/bin'
    assert clean_environment({'PATH': '.'})['PATH'].startswith('/usr/local/sbin:')

"""Which toolchains are opened for confined commands, and which folders only look like one."""

import os
import pwd
from pathlib import Path

import pytest
from tool_approval.os_sandbox.toolchain_layouts import environments_in
from tool_approval.os_sandbox.toolchains import (
    configured_problem,
    environment_written,
    find_toolchains,
)

PYTHON = ('bin/python3', 'lib/python3.12/os.py', 'lib/python3.12/encodings/utf_8.py')
LAYOUTS = {
    'pyenv': ('libexec/pyenv', 'shims/python', 'versions/3.12.1/bin/python', 'cache/secret'),
    'nvm': ('nvm.sh', 'versions/node/v9.1.0/bin/node', 'versions/node/v20.2.0/bin/node', '.npmrc'),
    'rustup': ('settings.toml', 'toolchains/stable/bin/cargo', 'update-hashes/stable', 'secret'),
    'cargo': ('bin/cargo', 'credentials.toml', 'registry/x'),
    'uv': ('cpython-3.12.1-linux/bin/python3', '.lock'),
    'asdf': ('installs/nodejs/20/bin/node', 'shims/node', '.secret'),
    'mise': ('installs/node/20/bin/node', 'shims/node', 'secret'),
}
PLACES = {
    'pyenv': ('PYENV_ROOT', '.pyenv', ['libexec', 'shims', 'versions']),
    'nvm': ('NVM_DIR', '.nvm', ['versions']),
    'rustup': ('RUSTUP_HOME', '.rustup', ['settings.toml', 'toolchains', 'update-hashes']),
    'cargo': ('CARGO_HOME', '.cargo', ['bin']),
    'uv': ('UV_PYTHON_INSTALL_DIR', '.local/share/uv/python', ['']),
    'asdf': ('ASDF_DATA_DIR', '.asdf', ['installs', 'shims']),
    'mise': ('MISE_DATA_DIR', '.local/share/mise', ['installs', 'shims']),
}


def make(folder, *files, text='#!/bin/sh\necho it runs\n'):
    for name in files:
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return Path(folder)


def make_environment(folder, home='/usr/bin'):
    make(folder, 'bin/activate', 'bin/python', 'lib/python3.12/site-packages/x.py')
    Path(folder, 'pyvenv.cfg').write_text(f'home = {home}\nversion = 3.12.1\n')
    return Path(folder)


@pytest.fixture
def home(tmp_path):
    folder = tmp_path.resolve() / 'home' / 'me'
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def work(home):
    folder = home / 'code' / 'project'
    folder.mkdir(parents=True)
    return folder


def find(home, work, configured=(), **variables):
    environment = {'HOME': str(home), 'PATH': '/usr/bin:/bin', **{name: str(each) for name, each in variables.items()}}
    return find_toolchains(environment=environment, directory=str(work), roots=[str(work)], configured=configured)


@pytest.mark.parametrize('kind', LAYOUTS)
def test_a_manager_is_found_in_its_usual_place_and_opened_in_the_parts_that_programs_need(home, work, kind):
    variable, place, parts = PLACES[kind]
    make(home / place, *LAYOUTS[kind])

    found = find(home, work)

    assert [each.kind for each in found.found] == [kind]
    assert sorted(found.opened) == sorted(str(home / place / part).rstrip('/') for part in parts)
    assert found.ignored == ()
    assert found.variables.get(variable) == (None if kind == 'cargo' else str(home / place))


@pytest.mark.parametrize('kind', LAYOUTS)
def test_a_manager_is_found_where_its_variable_says(home, work, tmp_path, kind):
    make(tmp_path / 'elsewhere', *LAYOUTS[kind])

    found = find(home, work, **{PLACES[kind][0]: tmp_path / 'elsewhere'})

    assert [each.folder for each in found.found] == [str(tmp_path.resolve() / 'elsewhere')]


@pytest.mark.parametrize('variable', ['VIRTUAL_ENV', 'CONDA_PREFIX', *(place[0] for place in PLACES.values())])
@pytest.mark.parametrize('place', ['{home}', '/', '{home}/..', '{home}/.local', '{work}/..', '{home}/link', 'x', ''])
def test_a_variable_never_opens_the_home_directory_or_what_is_above_it(home, work, variable, place):
    """Whatever is in it: here it has the layout of everything."""
    for folder in (home, home / '.local', work.parent, home.parent):
        for kind, files in LAYOUTS.items():
            make(folder, *(() if kind == 'uv' else files))
        make_environment(folder)
        make(folder, *PYTHON, 'conda-meta/history')
    (home / 'link').symlink_to('.')
    given = place.format(home=home, work=work)

    found = find(home, work, **{variable: given})

    assert found.opened == ()
    assert any(each.startswith(f'{variable}: {given} is ignored: the ') for each in found.ignored)


def test_the_home_directory_of_the_account_counts_whatever_home_says(home, work):
    account = pwd.getpwuid(os.geteuid()).pw_dir

    found = find(home, work, PYENV_ROOT=account)

    assert found.ignored == (f'PYENV_ROOT: {account} is ignored: the folder is the home directory, or contains it',)


def test_a_user_without_an_account_has_the_home_that_the_variable_says(home, work, monkeypatch):
    def no_account(uid):
        raise KeyError(uid)

    monkeypatch.setattr('pwd.getpwuid', no_account)
    make(home / '.pyenv', *LAYOUTS['pyenv'])

    assert [each.kind for each in find(home, work).found] == ['pyenv']
    assert find('', work).opened == ()


@pytest.mark.parametrize(('mode', 'reason'), [(0o777, 'every user can write to the folder'), (0o755, '')])
def test_folder_that_every_user_can_write_is_not_opened(home, work, mode, reason):
    make(home / '.nvm', *LAYOUTS['nvm']).chmod(mode)

    assert find(home, work).ignored == ((f'NVM_DIR: {home}/.nvm is ignored: {reason}',) if reason else ())


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away')
def test_folder_of_another_user_is_not_opened(home, work):
    os.chown(make(home / '.nvm', *LAYOUTS['nvm']), 65534, 65534)
    os.chown(make(home / 'bin', 'uv') / 'uv', 65534, 65534)

    found = find(home, work, PATH=home / 'bin')

    assert found.opened == ()
    assert found.ignored == (f'NVM_DIR: {home}/.nvm is ignored: the folder belongs to another user',)


def test_nothing_in_the_workspace_is_opened_but_the_active_environment(home, work):
    make(work / '.pyenv', *LAYOUTS['pyenv'])
    make(work / 'tools', *PYTHON)

    found = find(home, work, PYENV_ROOT=work / '.pyenv', PATH=f'{work}/tools/bin:{work}/bin:relative')

    assert found.opened == ()
    assert found.ignored == (
        f'PYENV_ROOT: {work}/.pyenv is ignored: the folder is in the workspace, where an agent may write',
    )


def test_the_active_environment_comes_first_on_the_path_with_the_python_that_it_was_made_of(home, work):
    base = make(home / 'python', *PYTHON, 'share/secret')
    environment = make_environment(home / 'env', base / 'bin')

    found = find(home, work, VIRTUAL_ENV=environment)

    assert [(each.kind, each.folder) for each in found.found] == [
        ('virtual environment', str(environment)),
        ('Python', str(base)),
    ]
    assert f'{base}/share' not in found.opened
    assert found.variables['PATH'] == f'{environment}/bin:/usr/bin'
    assert found.variables['VIRTUAL_ENV'] == str(environment)
    assert found.environments == ()


def test_an_environment_in_the_workspace_is_not_opened_since_its_root_is(home, work):
    environment = make_environment(work / '.venv')
    make_environment(work / 'venv')
    (work / 'env').symlink_to('venv')

    found = find(home, work, VIRTUAL_ENV=environment)

    assert [(each.folder, each.opened) for each in found.found] == [(str(environment), ())]
    assert found.environments == (f'{work}/.venv', f'{work}/venv')
    assert environments_in(str(work)) == found.environments


def test_the_active_environment_beside_the_roots_is_opened(home, work):
    environment = make_environment(work / '.venv')
    (work / 'src').mkdir()

    found = find_toolchains(
        environment={'HOME': str(home), 'VIRTUAL_ENV': str(environment)},
        directory=str(work),
        roots=[str(work / 'src')],
    )

    assert f'{environment}/bin' in found.opened
    assert found.environments == ()


def test_an_environment_that_is_a_root_is_as_writable_as_the_root(home, work):
    environment = make_environment(work / '.venv')

    found = find_toolchains(
        environment={'HOME': str(home), 'VIRTUAL_ENV': str(environment)},
        directory=str(work),
        roots=[str(environment)],
    )

    assert found.environments == ()


@pytest.mark.parametrize(
    'named',
    ['/', '/etc/..', '{home}', '{home}/bin', '{home}/secrets', '{home}/secrets/bin', '{work}/bin', '/etc', '//'],
)
def test_hostile_environment_opens_nothing_by_naming_a_python(home, work, named):
    for folder in (home, work):
        make(folder, *PYTHON)
    make(home / 'secrets', 'key', 'bin/python3')
    environment = make_environment(work / '.venv', named.format(home=home, work=work))
    (environment / 'bin' / 'python').unlink()
    (environment / 'bin' / 'python').symlink_to(home / 'secrets' / 'key')
    (environment / 'lib64').symlink_to(home)

    found = find(home, work, VIRTUAL_ENV=environment)

    assert found.opened == ()
    assert [each.partition(' is ignored: ')[0] for each in found.ignored] == [
        f'`home` in {environment}/pyvenv.cfg: {named.format(home=home, work=work)}'
    ]


@pytest.mark.parametrize('kind', ['missing', 'folder', 'link', 'fifo', 'relative', 'empty'])
def test_a_pyvenv_cfg_that_is_no_plain_file_names_no_python(home, work, kind):
    environment = make_environment(home / 'env')
    base = make(home / 'python', *PYTHON)
    config = environment / 'pyvenv.cfg'
    config.unlink()
    match kind:
        case 'folder':
            config.mkdir()
        case 'link':
            (home / 'text').write_text(f'home = {base}/bin\n')
            config.symlink_to(home / 'text')
        case 'fifo':
            os.mkfifo(config)
        case 'relative':
            config.write_text('home = python/bin\n')
        case 'empty':
            config.write_text('')
        case _:
            pass

    found = find(home, work, VIRTUAL_ENV=environment)

    assert not any(path.startswith(str(base)) for path in found.opened)


def test_parts_that_lead_out_of_the_toolchain_are_not_opened(home, work):
    (home / 'secrets').mkdir()
    environment = make_environment(home / 'env')
    (environment / 'share').symlink_to(home / 'secrets')
    (environment / 'lib64').symlink_to('lib')

    found = find(home, work, VIRTUAL_ENV=environment)

    assert sorted(found.opened) == [f'{environment}/{name}' for name in ('bin', 'lib', 'pyvenv.cfg')]


@pytest.mark.parametrize(
    ('kind', 'files'),
    [
        ('Python', PYTHON),
        ('Node.js', ('bin/node', 'include/node/node.h', 'lib/node_modules/npm/x', 'etc/npmrc')),
        ('Go', ('bin/go', 'VERSION', 'src/runtime/x.go', 'secret')),
        ('conda environment', (*PYTHON, 'conda-meta/history', '.condarc', 'pkgs/x')),
        ('virtual environment', ('bin/activate', 'bin/python', 'pyvenv.cfg', 'lib/python3.12/site-packages/x.py')),
    ],
)
def test_toolchain_of_a_folder_of_the_search_path_is_found_by_its_layout(home, work, kind, files):
    prefix = make(home / 'tools' / 'it', *files)
    (home / 'link').symlink_to('tools/it/bin')

    found = find(home, work, PATH=f'{home}/link:/usr/bin')

    assert [(each.kind, each.folder) for each in found.found] == [(kind, str(prefix))]
    assert not any('secret' in path or path.endswith(('etc', '.condarc', 'pkgs')) for path in found.opened)
    assert found.variables['PATH'] == f'{prefix}/bin:/usr/bin'


def test_the_active_conda_environment_comes_first_on_the_path(home, work):
    prefix = make(home / 'conda', *PYTHON, 'conda-meta/history', '.condarc')

    found = find(home, work, CONDA_PREFIX=prefix)

    assert sorted(found.opened) == [f'{prefix}/{name}' for name in ('bin', 'conda-meta', 'lib')]
    assert found.variables['PATH'] == f'{prefix}/bin:/usr/bin'


def test_programs_in_the_home_directory_open_neither_it_nor_their_folder(home, work):
    make(home, *PYTHON, 'bin/uv')

    found = find(home, work, PATH=home / 'bin')

    assert found.opened == (f'{home}/bin/uv',)
    assert found.ignored == (f'PATH: {home} is ignored: the folder is the home directory, or contains it',)


def test_links_to_nothing_make_no_layout(home, work):
    (home / '.nvm' / 'versions').mkdir(parents=True)
    for name in ('nvm.sh', 'versions/node'):
        (home / '.nvm' / name).symlink_to('nowhere')

    assert find(home, work).opened == ()


def test_a_folder_with_other_programs_is_not_opened_but_uv_in_it_is(home, work):
    make(home / '.local' / 'bin', 'uv', 'private-script')
    make(home / '.local' / 'share', 'secret')
    (home / '.local' / 'bin' / 'uvx').symlink_to('private-script')

    found = find(home, work, PATH=f'{home}/.local/bin')

    assert found.opened == (f'{home}/.local/bin/uv',)


def test_programs_that_are_not_on_the_path_come_last_in_their_newest_version(home, work):
    make(home / '.nvm', *LAYOUTS['nvm'])
    make(home / '.cargo', *LAYOUTS['cargo'])

    found = find(home, work, PATH=f'{home}/.cargo/bin:/usr/bin')

    assert found.variables['PATH'] == f'{home}/.cargo/bin:/usr/bin:{home}/.nvm/versions/node/v20.2.0/bin'


def test_a_folder_of_pythons_that_holds_something_else_is_not_that_of_uv(home, work):
    make(home / '.local/share/uv/python', *LAYOUTS['uv'], 'notes/secret')

    assert find(home, work).opened == ()


def test_the_choice_of_a_version_is_passed_on_if_it_is_one(home, work):
    found = find(home, work, PYENV_VERSION='3.12.1', RUSTUP_TOOLCHAIN='../../x; y')

    assert {name: found.variables[name] for name in found.variables if name != 'PATH'} == {'PYENV_VERSION': '3.12.1'}


def test_readable_folder_is_not_opened_again(home, work):
    found = find(home, work, configured=['/usr/bin'])

    assert (found.found, found.ignored) == ((), ())


def test_folders_that_the_settings_name_are_opened_as_a_whole(home, work):
    tools = make(home / 'tools', 'bin/x', 'lib/y')
    flat = make(home / 'flat', 'x')
    bare = home / 'bare'
    bare.mkdir()

    found = find(home, work, configured=[str(tools), str(flat), str(bare)])

    assert found.opened == (str(tools), str(flat), str(bare))
    assert found.variables['PATH'] == f'/usr/bin:{tools}/bin:{flat}'


@pytest.mark.parametrize(
    ('folder', 'problem'),
    [
        ('{home}', 'the folder is the home directory, or contains it'),
        ('/', 'the folder is the home directory, or contains it'),
        ('{work}/tools', 'the folder is in the workspace, where an agent may write'),
        ('{work}/..', 'the folder contains the workspace'),
        ('{home}/nowhere', 'there is no such directory'),
        ('{home}/.config', 'the folder also contains files that belong to no toolchain'),
        ('{home}/tools', None),
    ],
)
def test_a_folder_of_the_settings_that_cannot_be_opened_has_a_reason(home, work, monkeypatch, folder, problem):
    for place in (home / 'tools', work / 'tools', home / '.config'):
        place.mkdir()
    monkeypatch.setenv('HOME', str(home))

    assert configured_problem(folder.format(home=home, work=work), roots=[str(work)]) == problem


@pytest.mark.parametrize(
    ('command', 'written'),
    [
        ('pip install x', '/w/env'),
        ('pip3.12 install x', '/w/env'),
        ('python -m pip install x', '/w/env'),
        ('/w/.venv/bin/pip install x', '/w/.venv'),
        ('.venv/bin/python -m pip install x', '/w/.venv'),
        ('./sub/../.venv/bin/pip install x', '/w/.venv'),
        ('uv sync', '/w/.venv'),
        ('poetry install', '/w/.venv'),
        ('../outside/bin/pip install x', None),
        ('/usr/bin/pip install x', None),
        ('./pip install x', None),
        ('npm ci', None),
    ],
)
def test_which_environment_a_command_writes_to(command, written):
    environments = ['/w/.venv', '/w/env']

    assert environment_written(command.split(), cwd='/w', environments=environments, active='/w/env') == written


def test_without_an_environment_in_the_workspace_none_is_written():
    assert environment_written(['pip', 'install', 'x'], cwd='/w', environments=[], active='/home/me/env') is None
    assert environment_written(['uv', 'sync'], cwd='/w', environments=['/w/env'], active='/w/env') == '/w/env'

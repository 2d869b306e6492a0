"""Which files count as secrets, where they are found, and that reading one is asked about."""

import os
import time
from pathlib import Path

import pytest
from pydantic import ValidationError
from tool_approval.tools.file_sandbox import FileSandbox, FileTools, SandboxConfig
from tool_approval.tools.file_sandbox.secrets import SecretFiles, SecretRules, holds_secret

from tool_approval import ApprovalContext

KEY = b'-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n'
SECRET = """
.env .ENV .Env .env.local .env.production .env.bak .env~ .env.example.local sub/deep/.env .env. ．env
id_rsa id_ed25519 id_ecdsa_sk id_rsa.old id_dsa_work .netrc _netrc .pgpass .git-credentials
.aws/credentials .aws/sso/cache/a.json x/.aws/cli/cache/b .azure/msal_token_cache.json .azure/accessTokens.json
.kube/config .docker/config.json .cargo/credentials.toml .cargo/credentials .config/gcloud/credentials.db
gcloud/legacy_credentials/me/adc.json application_default_credentials.json .ssh/config .ssh/known_hosts .gnupg/x
"""
MAYBE = '.npmrc .pypirc .yarnrc.yml pip.conf .condarc server.pem a/b.key .npmrc. SERVER.PEM'
OTHER = """
.env.example .env.sample .env.template .env.dist .env.local.example .envrc env .environment prod.env
id_rsa.pub id_ed25519.pub id_map.py id_generator.go identity aws/credentials .aws/config config .kube/x
tests/server.pem test/fixtures/a.key examples/tls/key.pem readme.md key.pem.txt .pem.d
"""


@pytest.mark.parametrize(('names', 'looks'), [(SECRET, 'secret'), (MAYBE, 'maybe'), (OTHER, 'other')])
def test_names_are_known(names, looks):
    rules = SecretRules()

    found = {name: rules.look(['w'], ['w', *name.split('/')]) for name in names.split()}

    assert {name: each for name, each in found.items() if each != looks} == {}


def test_the_name_of_the_root_counts():
    assert SecretRules().look(['home', '.aws'], ['home', '.aws', 'credentials']) == 'secret'
    assert SecretRules().look(['.aws', 'w'], ['.aws', 'w', 'credentials']) == 'other'


@pytest.mark.parametrize(
    ('glob', 'matched', 'others'),
    [
        ('*.secret', 'a.secret x/b.secret x/B.SECRET', 'a.secrets secret'),
        ('secrets/', 'secrets/a x/secrets/b/c', 'secrets.txt'),
        ('config/prod.yaml', 'config/prod.yaml', 'x/config/prod.yaml config/prodXyaml'),
        ('config/*', 'config/a config/a/b', 'x/config/a config2/a'),
        ('config/**', 'config/a config/a/b/c', 'configs'),
        ('**/prod/*.key', 'prod/a.key x/y/prod/b.key', 'prod/x.pub'),
        ('a/**/z', 'a/z a/b/z a/b/c/z', 'az a/bz'),
        ('k?y', 'key x/kay', 'keey k/y'),
        ('[id].txt', '[id].txt', 'i.txt'),
    ],
)
def test_globs_add_names_and_take_them_back(glob, matched, others):
    hidden, visible = SecretRules([glob]), SecretRules(['*'], [glob])

    for names, first, second in ((matched, 'secret', 'other'), (others, 'other', 'secret')):
        for name in names.split():
            path = ['w', *name.split('/')]
            assert (hidden.look(['w'], path), visible.look(['w'], path)) == (first, second), name


def test_an_exception_goes_before_what_is_known():
    rules = SecretRules(visible=['.env', 'keys/**'])

    assert rules.look(['w'], ['w', 'sub', '.env']) == 'other'
    assert rules.look(['w'], ['w', 'keys', 'id_rsa']) == 'other'
    assert rules.look(['w'], ['w', '.env.local']) == 'secret'


@pytest.mark.parametrize('glob', ['', '/', '/etc/x', '~/x', '../x', 'a/../b', 'a\0'])
@pytest.mark.parametrize('field', ['hidden', 'visible'])
def test_a_glob_that_leads_out_of_a_root_is_a_mistake(field, glob):
    with pytest.raises(ValidationError, match='is not a glob within a root'):
        SandboxConfig.model_validate({field: [glob]})


@pytest.mark.parametrize(
    ('name', 'content', 'is_secret'),
    [
        ('a.pem', KEY, True),
        ('a.pem', b'-----BEGIN CERTIFICATE-----\nx\n-----BEGIN RSA PRIVATE KEY-----', True),
        ('a.pem', b'-----BEGIN CERTIFICATE-----\nx\n', False),
        ('a.key', b'-----BEGIN PUBLIC KEY-----', False),
        ('.npmrc', b'registry=https://x\n//x/:_authToken=npm_abc\n', True),
        ('.npmrc', b'//x/:_authToken=${NPM_TOKEN}\nregistry=https://x', False),
        ('.NPMRC', b'_auth = "abc"', True),
        ('.pypirc', b'[pypi]\nusername = __token__\npassword = pypi-abc\n', True),
        ('.pypirc', b'[pypi]\nrepository = https://x\n', False),
        ('.yarnrc.yml', b'npmAuthToken: abc', True),
        ('pip.conf', b'index-url = https://me:token@x/simple', True),
        ('pip.conf', b'index-url = https://x/simple', False),
    ],
)
def test_content_decides_about_some_names(name, content, is_secret):
    assert holds_secret(name, content) is is_secret


def write(folder, **files):
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path.resolve() / 'work'
    write(
        folder,
        **{
            '.env': b'a',
            'sub/.env.local': b'a',
            'sub/a.pem': KEY,
            'sub/b.pem': b'',
            'tests/c.pem': KEY,
            '.npmrc': b'_auth=x',
            'node_modules/x/.env': b'',
            '.git/.env': b'',
            '.ssh/config': b'',
            'plain.txt': b'a',
        },
    )
    return folder


def find(files, work):
    return [os.path.relpath(path, work) for path in files.find()]


FOUND = ['.env', '.npmrc', '.ssh', 'sub/.env.local', 'sub/a.pem']


def test_secrets_are_found_where_they_are(work):
    assert find(SecretFiles(SecretRules(), [work]), work) == FOUND


def settle(folder):
    """As if everything had been so for a while."""
    real = time.time_ns
    return lambda: real() + 10**10


@pytest.mark.parametrize('is_settled', [False, True])
def test_secrets_that_appear_change_or_go_count_the_next_time(work, monkeypatch, is_settled):
    if is_settled:
        monkeypatch.setattr(time, 'time_ns', settle(work))
    files = SecretFiles(SecretRules(), [work])
    assert find(files, work) == FOUND

    write(work, **{'new/deep/.env': b'', 'sub/b.pem': KEY})
    (work / '.npmrc').write_text('registry=x')
    (work / 'plain.txt').rename(work / 'id_rsa')
    assert find(files, work) == ['.env', '.ssh', 'id_rsa', 'new/deep/.env', *FOUND[3:], 'sub/b.pem']

    (work / 'new').rename(work / 'renamed')
    (work / '.env').unlink()
    assert find(files, work) == ['.ssh', 'id_rsa', 'renamed/deep/.env', *FOUND[3:], 'sub/b.pem']


def test_a_time_that_a_command_sets_back_hides_no_change(work, monkeypatch):
    monkeypatch.setattr(time, 'time_ns', settle(work))
    files = SecretFiles(SecretRules(), [work])
    files.find()
    before = (work / 'sub').stat()
    pem = (work / 'sub' / 'b.pem').stat()

    write(work, **{'sub/.env': b'', 'sub/b.pem': KEY})
    os.utime(work / 'sub', ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(work / 'sub' / 'b.pem', ns=(pem.st_atime_ns, pem.st_mtime_ns))

    assert {'sub/.env', 'sub/b.pem'} <= set(find(files, work))


def test_a_folder_that_has_not_changed_is_not_read_again(work, monkeypatch):
    monkeypatch.setattr(time, 'time_ns', settle(work))
    files = SecretFiles(SecretRules(), [work])
    files.find()
    monkeypatch.setattr(os, 'scandir', None)

    assert find(files, work) == FOUND


def test_links_and_other_names_of_a_secret_count(work, tmp_path):
    write(work, **{'conf/dev': b'', 'keys/a': b'', 'plain2': b''})
    write(tmp_path, **{'outside.txt': b''})
    os.link(work / '.env', work / 'sub' / 'copy.txt')
    (work / 'conf' / '.env').symlink_to('dev')
    (work / 'conf' / '.env.out').symlink_to(tmp_path / 'outside.txt')
    (work / 'conf' / '.env.gone').symlink_to('nowhere')
    (work / 'conf' / '.env.loop').symlink_to('.env.loop')
    (work / 'conf' / '.ssh').symlink_to('../keys')
    (work / 'conf' / '.env.dir').symlink_to('../keys')
    (work / 'conf' / 'x.pem').symlink_to('../plain2')
    (work / 'again').symlink_to('sub')

    found = find(SecretFiles(SecretRules(), [work]), work)

    assert found == sorted([*FOUND, 'conf/dev', 'keys', 'sub/copy.txt'])


def test_a_folder_named_as_a_file_is_searched(work):
    write(work, **{'.env.d/x': b'', '.env.d/.env': b''})

    assert '.env.d/.env' in find(SecretFiles(SecretRules(), [work]), work)
    assert '.env.d' not in find(SecretFiles(SecretRules(), [work]), work)


def test_globs_of_the_settings_hide_folders_and_show_files(work):
    files = SecretFiles(SecretRules(['sub'], ['.env', '.ssh']), [work])

    assert find(files, work) == ['.npmrc', 'sub']


def test_found_secrets_stay_hidden_where_a_command_makes_too_many_folders(work):
    """Attack: the folders at the top are looked through first, and a command makes more of them than that."""
    write(work, **{'z/deep/deeper/.env': b''})
    files = SecretFiles(SecretRules(), [work], most_folders=12)
    files.find()
    assert files.is_complete
    for number in range(20):
        (work / f'a{number}').mkdir()

    found = find(files, work)

    assert 'z/deep/deeper/.env' in found
    assert not files.is_complete
    (work / 'z/deep/deeper/.env').unlink()
    assert 'z/deep/deeper/.env' not in find(files, work)


def test_a_nested_root_is_searched_by_its_own_names_and_skipped_folders_are_not(work):
    write(work, **{'venv/lib/cacert.pem': KEY, 'inner/x.yaml': b''})
    files = SecretFiles(SecretRules(['x.yaml', '/x.yaml'[1:]]), [work, work / 'inner'])
    files.skip([str(work / 'venv')])

    found = find(files, work)

    assert 'inner/x.yaml' in found
    assert not any(name.startswith('venv') for name in found)


def test_a_root_that_is_gone_has_no_secrets(tmp_path):
    assert SecretFiles(SecretRules(), [tmp_path / 'nowhere']).find() == ()


def test_file_that_cannot_be_opened_is_not_a_secret(work, monkeypatch):
    (work / 'fifo.pem').unlink(missing_ok=True)
    os.mkfifo(work / 'fifo.pem')

    def refuse(path, *others, **more):
        if str(path).endswith('a.pem'):
            raise PermissionError
        return opened(path, *others, **more)

    opened = os.open
    monkeypatch.setattr(os, 'open', refuse)

    assert find(SecretFiles(SecretRules(), [work]), work) == [name for name in FOUND if name != 'sub/a.pem']


def tools(work, **options):
    config = {'paths': {'w': {'root': '.', 'mode': 'rw', 'write_approval': False}}, **options}
    return FileTools(FileSandbox(config, work))


def asked(files, tool, **arguments):
    request = files.check_approval(ApprovalContext(tool_name=tool, args=arguments))
    return None if request is None else request.reason


@pytest.mark.parametrize(
    'path', ['.env', 'sub/.env.local', 'sub/a.pem', '.npmrc', '.ssh/config', './sub/../.env', '.ENV']
)
def test_reading_a_secret_is_asked_about_where_reading_is_free(work, path):
    write(work, **{'.ENV': b''})

    reason = asked(tools(work), 'read_file', path=path)

    assert reason is not None
    assert reason.endswith('usually holds secrets.')


@pytest.mark.parametrize('path', ['plain.txt', 'sub/b.pem', 'tests/c.pem', '.git/x', '.env.example'])
def test_reading_anything_else_is_as_free_as_before(work, path):
    assert asked(tools(work), 'read_file', path=path) is None


def test_an_exception_is_read_freely_and_a_glob_of_the_settings_is_asked_about(work):
    files = tools(work, hidden=['plain.*'], visible=['.env'])

    assert asked(files, 'read_file', path='.env') is None
    assert asked(files, 'read_file', path='plain.txt') == 'w:plain.txt usually holds secrets.'


@pytest.mark.parametrize('link', ['a.txt', 'sub/.env'])
def test_a_link_to_or_from_a_secret_is_one(work, link):
    (work / 'a.txt').symlink_to('.env')
    (work / 'sub' / '.env').symlink_to('../plain.txt')
    files = tools(work)
    files.sandbox.secrets.find()

    assert 'usually holds secrets.' in asked(files, 'read_file', path=link)
    # It was found by the link that leads there.
    assert asked(files, 'read_file', path='plain.txt') == 'w:plain.txt usually holds secrets.'


@pytest.mark.parametrize(
    ('tool', 'arguments', 'is_asked'),
    [
        ('edit_file', {'path': '.env', 'old_text': 'a', 'new_text': 'b'}, True),
        # Whether a text occurs in it would be told otherwise.
        ('edit_file', {'path': '.env', 'old_text': 'zzz', 'new_text': 'b'}, True),
        ('copy', {'path': '.env', 'dest': 'x.txt'}, True),
        ('move', {'path': '.env', 'dest': 'x.txt'}, True),
        ('move', {'path': 'sub', 'dest': 'other'}, True),
        ('move', {'path': 'tests', 'dest': 'other'}, False),
        ('write_file', {'path': '.env', 'content': 'x'}, False),
        ('delete', {'path': '.env'}, False),
        ('list_files', {'path': '.'}, False),
    ],
)
def test_operation_that_shows_a_secret_or_takes_its_name_is_asked_about(work, tool, arguments, is_asked):
    reason = asked(tools(work), tool, **arguments)

    assert (reason is not None and 'usually holds secrets.' in reason) is is_asked


def test_a_list_shows_no_contents(work):
    (work / '.env').write_text('s3cret')

    assert 's3cret' not in tools(work).list_files(path='.')


def test_an_approval_for_a_whole_directory_does_not_cover_a_secret(work):
    request = tools(work).check_approval(ApprovalContext(tool_name='read_file', args={'path': '.env'}))

    assert request.remember_options == ()
    assert request.payload['kind'] == 'secret'


def test_without_an_answer_a_secret_is_not_read(work):
    with pytest.raises(PermissionError, match='usually holds secrets'):
        tools(work).read_file(path='.env')


def test_a_folder_with_what_a_secret_link_leads_to_is_not_moved_unasked(work):
    (work / 'sub' / '.env').symlink_to('../docs/dev')
    write(work, **{'docs/dev': b''})
    files = tools(work)
    files.sandbox.secrets.find()

    assert 'usually holds secrets' in asked(files, 'move', path='docs', dest='other')


def test_a_folder_that_nobody_can_look_through_is_not_moved_unasked(work, monkeypatch):
    monkeypatch.setattr('tool_approval.tools.file_sandbox.content.MAX_TREE', 0)

    assert tools(work).sandbox.holds_secrets('tests')


def test_a_sandbox_says_whether_a_path_leads_to_secrets(work):
    sandbox = tools(work).sandbox

    write(work, **{'docs/a.txt': b'', 'x.pem': b''})
    (work / 'gone.pem').symlink_to('nowhere.pem')

    paths = ['.env', 'sub', '.', 'plain.txt', 'docs', 'x.pem', '/etc/passwd', 'nowhere', 'gone.pem']
    assert [sandbox.holds_secrets(path) for path in paths] == [True] * 3 + [False] * 6

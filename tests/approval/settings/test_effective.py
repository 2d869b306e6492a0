"""Untrusted settings only tighten."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tool_approval.settings import LoadedSettings, Settings, effective, read_settings
from tool_approval.settings.files import expanded
from tool_approval.settings.model import DEFAULT_SANDBOX
from tool_approval.tools.file_sandbox import FileSandbox
from tool_approval.tools.shell import ShellTool

from tool_approval import ApprovalContext

RANK = {'allow': 0, 'ask': 1, 'block': 2}


def untrusted(document, directory='.'):
    return LoadedSettings(
        settings=read_settings(document),
        source=Path('approvals.yaml'),
        directory=Path(directory).absolute(),
        digest='',
        trusted=False,
        why_untrusted='the user has not trusted the file',
    )


def test_trusted_settings_are_unchanged(tmp_path):
    settings = read_settings({'default': 'none', 'shell': {'default': {'approval': False}}})
    loaded = LoadedSettings(settings=settings, source=None, directory=tmp_path, digest='', trusted=True)

    assert effective(loaded) is settings


def test_an_empty_file_changes_nothing():
    assert effective(untrusted({})) == Settings()


def test_untrusted_settings_that_tighten_are_kept():
    document = {
        'mode': 'strict',
        'default': 'required',
        'tools': {'a': {'approval': 'blocked'}},
        'custom_tools': {'b': {'approval': 'required'}},
        'sandbox': {'require_os_sandbox': True, 'os_sandbox_fallback': 'refuse_tools'},
        'shell': {'default': {'allowed': False}, 'rules': [{'pattern': 'rm', 'allowed': False}], 'timeout_s': 5},
    }

    assert effective(untrusted(document)) == read_settings(document)


def test_untrusted_pre_approvals_grants_and_descriptions_are_dropped():
    held = effective(
        untrusted(
            {
                'default': 'none',
                'tools': {'a*': {'approval': 'none', 'description': 'Harmless.'}},
                'custom_tools': {'b': {'approval': 'required', 'description': 'Harmless.'}},
                'auto_grant': {'vm': ['net']},
                'audit': {'unasked': False},
                'notify': {'people': {'eve': ['HOME']}},
            }
        )
    )

    assert held == read_settings({'tools': {'a*': {}}, 'custom_tools': {'b': {'approval': 'required'}}})


def test_untrusted_answers_can_only_forbid():
    held = effective(untrusted({'tools': {'a': {'answers': ['approve', 'respond']}, 'b': {'answers': []}, 'c': {}}}))

    answers = {name: held.policy.rule_for(name).answers for name in 'abc'}
    assert answers == {'a': ('approve',), 'b': (), 'c': None}


def test_untrusted_cases_can_only_tighten():
    cases = [
        {'when': {'x': {'is': 1}}, 'approval': 'none'},
        {'when': {'x': {'is': 2}}, 'approval': 'blocked', 'description': 'lie'},
    ]
    held = effective(untrusted({'tools': {'a': {'approval': 'none', 'cases': cases}}}))
    found = {x: held.policy.rule_for('a', {'x': x}) for x in (1, 2, 3, '1')}

    assert {x: rule.approval for x, rule in found.items()} == {1: None, 2: 'blocked', 3: None, '1': 'blocked'}
    assert {rule.description for rule in found.values()} == {None}


def test_untrusted_pre_approval_does_not_hide_a_later_rule():
    held = effective(untrusted({'tools': {'delete_a': {'approval': 'none'}, 'delete_*': {'approval': 'required'}}}))

    assert held.policy.rule_for('delete_a').approval == 'required'


def test_untrusted_roots_ask_and_those_outside_are_dropped(tmp_path):
    (tmp_path / 'work').mkdir()
    (tmp_path / 'work' / 'bent').symlink_to(tmp_path)
    free = {'mode': 'rw', 'write_approval': False, 'read_approval': False}
    roots = {'a': './a', 'all': '.', 'ro': 'b', 'up': '..', 'root': '/', 'bent': 'bent', 'beside': '../work2'}
    document = {'sandbox': {'paths': {name: {'root': root, **free} for name, root in roots.items()}}}
    document['sandbox']['paths']['ro']['mode'] = 'ro'

    held = effective(untrusted(document, tmp_path / 'work'))

    assert {name: path.mode for name, path in held.sandbox.paths.items()} == {'a': 'rw', 'all': 'rw', 'ro': 'ro'}
    assert all(path.write_approval and path.read_approval for path in held.sandbox.paths.values())


def test_untrusted_settings_give_no_network_and_no_longer_timeout():
    held = effective(untrusted({'shell': {'network': True, 'timeout_s': 86_400, 'default': {'approval': False}}}))

    assert (held.shell.network, held.shell.timeout_s, held.shell.default.approval) == (False, 600, True)


def test_untrusted_rules_lose_the_roots_that_were_dropped(tmp_path):
    rules = [
        {'pattern': 'cat', 'sandbox_paths': ['in']},
        {'pattern': 'head', 'sandbox_paths': ['in', 'out']},
        {'pattern': 'tail', 'sandbox_paths': ['out']},
        {'pattern': 'rm', 'allowed': False, 'sandbox_paths': ['in']},
        {'pattern': 'mv', 'allowed': False, 'sandbox_paths': ['in', 'out']},
    ]
    paths = {'in': {'root': 'in'}, 'out': {'root': '/out'}}

    held = effective(untrusted({'sandbox': {'paths': paths}, 'shell': {'rules': rules}}, tmp_path))

    assert [(rule.pattern, rule.sandbox_paths) for rule in held.shell.rules] == [
        ('cat', ('in',)),
        ('head', ('in',)),
        ('rm', ('in',)),
        ('mv', ()),
    ]


def test_untrusted_rules_may_name_the_default_root(tmp_path):
    rules = [{'pattern': 'rm', 'allowed': False, 'sandbox_paths': ['workspace']}]

    held = effective(untrusted({'shell': {'rules': rules}}, tmp_path))

    assert held.shell.rules[0].sandbox_paths == tuple(DEFAULT_SANDBOX.paths)


PROGRAMS = ['ls', 'git', 'rm', 'cat']
PATTERNS = st.sampled_from([*PROGRAMS, 'git status', 'git push', 'rm -r'])
RULES = st.lists(
    st.fixed_dictionaries(
        {'pattern': PATTERNS},
        optional={
            'allowed': st.booleans(),
            'approval': st.booleans(),
            'sandbox_paths': st.lists(st.sampled_from(['in', 'out']), unique=True, max_size=2),
        },
    ),
    max_size=5,
)
DEFAULTS = st.fixed_dictionaries({}, optional={'allowed': st.booleans(), 'approval': st.booleans()})
COMMANDS = [
    'ls',
    'git status -s',
    'env git push',
    '/tmp/git status',
    'rm -r in/a',
    'rm /out/a',
    'cat in/a /out/a',
    'timeout 5 git status; ls',
    'ls > in/a',
    'sh -c "rm x"',
]


def shell_of(settings, sandbox):
    # Roots by their text: whether they exist says nothing here.
    return ShellTool(
        settings.shell,
        cwd='/desk',
        roots={name: {'in': '/desk/in', 'project': '/desk'}.get(name, '/out') for name in sandbox},
    )


@pytest.mark.untraced
@examples(max_examples=300, deadline=None)
@given(
    rules=RULES,
    default=DEFAULTS,
    presets=st.lists(st.sampled_from(['default', 'read-only']), max_size=2),
)
def test_no_command_is_decided_more_freely_than_without_the_file_or_with_trust(rules, default, presets):
    paths = {'in': {'root': 'in'}, 'out': {'root': '/out'}}
    document = {'extends': presets, 'sandbox': {'paths': paths}, 'shell': {'rules': rules, 'default': default}}
    loaded = untrusted(document, '/desk')
    held, whole = effective(loaded), expanded(loaded.settings)
    trusted, tightened = shell_of(whole, whole.sandbox.paths), shell_of(held, held.sandbox.paths)

    for command in COMMANDS:
        decision = RANK[tightened.explain(command).decision]

        assert decision >= RANK['ask']
        assert decision >= RANK[trusted.explain(command).decision]


TOOL_RULES = st.dictionaries(
    st.sampled_from(['read', 'write', 'w*', '*']),
    st.fixed_dictionaries({}, optional={'approval': st.sampled_from(['required', 'none', 'blocked'])}),
)


@pytest.mark.untraced
@examples(max_examples=200, deadline=None)
@given(rules=TOOL_RULES, default=st.none() | st.sampled_from(['required', 'none']))
def test_no_tool_is_decided_more_freely_than_without_the_file_or_with_trust(rules, default):
    loaded = untrusted({'tools': rules, 'default': default})

    for name in ('read', 'write', 'other'):
        ranks = [rank_of(settings, name) for settings in (effective(loaded), Settings(), loaded.settings)]

        assert ranks[0] == max(ranks)


def rank_of(settings, name):
    judging = settings.policy.judge(ApprovalContext(tool_name=name, args={}))
    with pytest.raises(StopIteration) as ended:
        judging.send(None)
    verdict = ended.value.value
    return 2 if verdict.is_blocked else int(verdict.is_needs_approval)


FLAGS = st.fixed_dictionaries(
    {'root': st.sampled_from(['.', 'a', 'a/b', '..', '/', 'link'])},
    optional={
        'mode': st.sampled_from(['ro', 'rw']),
        'write_approval': st.booleans(),
        'read_approval': st.booleans(),
        'suffixes': st.just(['.txt']),
    },
)


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    work = tmp_path_factory.mktemp('top') / 'work'
    (work / 'a' / 'b').mkdir(parents=True)
    for path in (work.parent / 'outside.txt', work / 'x.txt', work / 'a' / 'x.txt', work / 'a' / 'b' / 'x.py'):
        path.write_text('x')
    (work / 'link').symlink_to(work.parent)
    return work


@pytest.mark.untraced
@examples(max_examples=200, deadline=None)
@given(paths=st.lists(FLAGS, max_size=3, unique_by=lambda path: path['root']))
def test_no_file_is_used_more_freely_than_without_the_file_or_with_trust(tree, paths):
    loaded = untrusted({'sandbox': {'paths': {f'p{at}': path for at, path in enumerate(paths)}}}, tree)
    held = [effective(loaded).sandbox, DEFAULT_SANDBOX, loaded.settings.sandbox]
    sandboxes = [FileSandbox(each, tree) for each in held]

    for name in ('x.txt', 'a/x.txt', 'a/b/x.py', '../outside.txt', 'link/outside.txt'):
        for operation in ('read_file', 'write_file', 'delete'):
            ranks = [RANK[sandbox.decide(operation, name).outcome] for sandbox in sandboxes]

            assert ranks[0] == max(ranks[0], *ranks[1:])

"""Presets under a file: what comes first, what cannot be lifted, and what has to be trusted again."""

import hashlib

import pytest
from tool_approval.settings import extends, load_settings, parse_settings, trust_settings
from tool_approval.settings.extends import expand, read_preset

from tool_approval import ApprovalConfigError

from .desk import Backend, Desk


@pytest.fixture
def desk(tmp_path):
    def make(text, **options):
        desk = Desk(tmp_path / 'desk', text, backend=Backend(), **options)
        (desk.folder / 'src').mkdir(exist_ok=True)
        (desk.folder / 'src' / 'a.py').write_text('a\n')
        return desk

    return make


def decision(desk, command):
    return desk.workspace.shell.explain(command).decision


def test_rules_of_the_file_apply_beside_those_of_its_presets(desk):
    made = desk("""
        extends: [read-only]
        shell:
          rules:
            - {pattern: make, approval: false}
            - {pattern: cat, allowed: false}
    """)

    assert [decision(made, command) for command in ('make', 'cat src/a.py', 'rm a', 'ls')] == [
        'allow',
        'block',
        'block',
        'ask',
    ]


@pytest.mark.parametrize(
    ('text', 'asks'),
    [
        ('extends: [default]', False),
        ('{extends: [read-only], shell: {timeout_s: 7}}', False),
        ('{extends: [default], shell: {default: {approval: true}}}', True),
        ('shell: {timeout_s: 7}', True),
    ],
)
def test_the_files_own_default_for_commands_comes_first(text, asks):
    assert expand(parse_settings(text)).shell.default.approval is asks


def test_a_block_of_a_preset_is_not_lifted(desk):
    made = desk("""
        extends: [read-only]
        sandbox: {paths: {project: {root: ., mode: rw, write_approval: false}}}
        shell: {rules: [{pattern: rm, approval: false}, {pattern: touch, approval: false, arguments: any}]}
    """)

    assert decision(made, 'rm src/a.py') == decision(made, 'touch src/a.py') == 'block'
    assert made.workspace.files.decide('write_file', 'src/a.py').outcome == 'block'


@pytest.mark.parametrize('root', ['.', './', 'src/..'])
def test_an_entry_for_the_same_directory_takes_the_place_of_the_presets(desk, root):
    made = desk(f"""
        extends: [default]
        sandbox: {{paths: {{work: {{root: {root}, mode: rw, write_approval: false}}}}}}
    """)

    assert made.workspace.files.decide('write_file', 'a').files == ('work:a',)
    assert made.workspace.files.decide('write_file', 'a').outcome == 'allow'


@pytest.mark.parametrize(
    ('root', 'outcomes'),
    [
        pytest.param('src/..', {'a': 'block'}, id='the same directory under another name stays read-only'),
        pytest.param('src', {'src/b.py': 'allow', 'b.py': 'block'}, id='another directory has its own rules'),
    ],
)
def test_an_entry_under_another_name_does_not_replace_the_directory_of_a_preset(desk, root, outcomes):
    made = desk(f"""
        extends: [read-only]
        sandbox: {{paths: {{work: {{root: {root}, mode: rw, write_approval: false}}}}}}
    """)

    assert {path: made.workspace.files.decide('write_file', path).outcome for path in outcomes} == outcomes


def test_name_of_a_preset_root_for_another_directory_is_a_mistake(desk):
    with pytest.raises(ApprovalConfigError) as caught:
        desk('extends: [default]\nsandbox:\n  paths:\n    project: {root: src}\n')

    assert caught.value.line == 4
    assert str(caught.value).endswith(
        'sandbox.paths.project: a preset uses `project` for the directory `.`; choose another name here'
    )


def test_presets_leave_the_other_keys_of_the_file_unchanged(desk):
    made = desk("""
        extends: [read-only, read-only]
        mode: strict
        sandbox: {os_sandbox_fallback: refuse_tools}
        shell: {timeout_s: 7, network: true}
    """)

    held = made.workspace.settings
    assert (held.mode, held.os_sandbox_fallback, held.shell.timeout_s, held.shell.network) == (
        'strict',
        'refuse_tools',
        7,
        True,
    )
    assert len(held.shell.rules) == len(read_preset('read-only').shell.rules)


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('extends: [defalt]', 'unknown value `defalt`; did you mean `default`?; use `default`, `read-only`'),
        ('extends: [./mine.yaml]', 'use `default`, `read-only`'),
        ('extends: [..]', 'unknown value `..`'),
        ('extends: default', 'not a list'),
        ('extends:', 'not a list'),
        ('extends: [[default]]', 'not a string'),
        ('shell: {rules: [{pattern: ls, preset: default, line: 1}]}', 'unknown key'),
    ],
)
def test_invalid_list_of_presets_is_a_mistake(text, said):
    with pytest.raises(ApprovalConfigError) as caught:
        parse_settings(text)

    assert said in str(caught.value)


def test_file_without_presets_has_only_its_own_rules(desk):
    made = desk('shell: {rules: [{pattern: make, approval: false}]}')

    assert decision(made, 'ls') == 'ask'
    assert made.workspace.files.decide('read_file', 'src/a.py').outcome == 'ask'
    assert expand(made.loaded.settings).shell.rules == made.loaded.settings.shell.rules


def test_presets_of_an_untrusted_file_only_tighten(desk):
    made = desk('extends: [default, read-only]', named=False)

    assert [decision(made, command) for command in ('ls', 'rm a')] == ['ask', 'block']
    assert made.workspace.files.decide('read_file', 'src/a.py').outcome == 'ask'
    assert made.workspace.files.decide('write_file', 'src/a.py').outcome == 'block'


def test_changed_preset_must_be_trusted_again(tmp_path, store, monkeypatch):
    (folder := tmp_path / 'folder').mkdir()
    (folder / 'approvals.yaml').write_text('extends: [read-only]')
    loaded = load_settings(directory=folder, trust=store)
    trust_settings(loaded, store)
    unchanged = load_settings(directory=folder, trust=store)
    rules = read_preset('read-only').shell.rules
    upgraded = parse_settings('{sandbox: {}, shell: {rules: [{pattern: git push, approval: false}]}}')

    monkeypatch.setattr(extends, 'read_preset', lambda name: upgraded)
    changed = load_settings(directory=folder, trust=store)

    assert rules
    assert not loaded.trusted
    assert unchanged.trusted
    assert not changed.trusted
    assert changed.why_untrusted == 'the file, or a preset that the file extends, has changed since it was trusted'


def test_digest_without_presets_is_that_of_the_file(tmp_path, store, monkeypatch):
    (tmp_path / 'approvals.yaml').write_text('mode: strict')
    monkeypatch.setattr(extends, 'read_preset', None)

    digest = load_settings(directory=tmp_path, trust=store).digest

    assert digest == hashlib.sha256(b'mode: strict').hexdigest()


def test_the_reason_names_the_preset_and_its_line(desk):
    made = desk('extends: [read-only]')

    reason = made.workspace.shell.explain('rm a').deciding.reason

    assert reason == 'the rule `rm` of the preset `read-only` (line 12) blocks it'

"""What `check` finds."""

import json
import sys

import pytest


def check(tool_approval, work, text, *arguments):
    (work / 'approvals.yaml').write_text(text)
    return tool_approval('check', '--json', *arguments)


def warnings(finished):
    return [(each['key'], each['line']) for each in finished.json['findings'] if each['level'] == 'warning']


def test_a_configuration_without_mistakes_is_fine(tool_approval):
    finished = tool_approval('check')

    assert finished.status == 0
    assert finished.out.endswith('0 errors, 0 warnings\n')
    assert 'the file is not trusted (the user has not trusted the file)' in finished.out


@pytest.mark.parametrize(
    ('text', 'key', 'line', 'message'),
    [
        ('tols: {}', 'tols', 1, 'did you mean `tools`?'),
        ('tools:\n  x: {approval: nome}', 'tools.x.approval', 2, 'did you mean `none`?'),
        ('tools: [', None, 1, 'not YAML'),
        ('shell:\n  rules:\n    - {pattern: ls, match: [cat]}', 'shell.rules.0.match', 3, 'does not decide `cat`'),
        ('shell:\n  rules:\n    - {pattern: ls, not_match: [ls -l]}', 'shell.rules.0.not_match', 3, 'the rule decides'),
        (
            'shell:\n  rules:\n    - {pattern: ls, sandbox_paths: [src]}',
            'shell.rules.0.sandbox_paths',
            3,
            'no root `src`',
        ),
        ('sandbox:\n  paths:\n    a: {root: x}\n    b: {root: ./x}', 'sandbox.paths.b.root', 4, 'the same directory'),
        ('sandbox:\n  toolchains: [~/tools]', 'sandbox.toolchains.0', 2, 'a toolchain must be an absolute path'),
        ('sandbox:\n  toolchains: ["/a\\0"]', 'sandbox.toolchains.0', 2, 'a toolchain must be an absolute path'),
        ('sandbox:\n  hidden: [../x]', 'sandbox.hidden.0', 2, 'is not a glob within a root'),
        ('mode: approve_all', 'mode', 1, 'must not approve everything'),
    ],
)
def test_a_mistake_has_its_key_and_line(tool_approval, work, text, key, line, message):
    finished = check(tool_approval, work, text)

    [found] = [each for each in finished.json['findings'] if each['level'] == 'error']
    assert finished.status == 2
    assert finished.json['ok'] is False
    assert (found['key'] or '').startswith(key or '')
    assert found['line'] == line
    assert message in found['message']


def test_a_mistake_is_printed_with_its_place(tool_approval, work):
    (work / 'approvals.yaml').write_text('shell:\n  rules:\n    - {pattern: ls, match: [cat]}\n')

    finished = tool_approval('check')

    assert finished.out == (
        'error: approvals.yaml:3: shell.rules.0.match: the rule does not decide `cat`\n1 error, 0 warnings\n'
    )


@pytest.mark.parametrize(
    ('text', 'key', 'message'),
    [
        ('tools: {x: {}}', 'tools.x', 'the rule has no effect'),
        ('custom_tools: {x: {}}', 'custom_tools.x', 'the rule has no effect'),
        ('tools: {"delete_*": {approval: blocked}, delete_a: {approval: none}}', 'tools.delete_a', 'never decides'),
        ('tools: {"*": {approval: blocked}, "a?[bc]*": {approval: none}}', 'tools.a?[bc]*', 'never decides'),
        ('tools: {"a*": {approval: none}, "a**": {approval: required}}', 'tools.a*', 'never decides'),
        ('tools: {shell: {approval: required}}', 'tools.shell', 'agents call the shell tool `run_shell`'),
        ('tools: {run_shell: {approval: none}}', 'tools.run_shell', '`run_shell` runs without approval'),
        ('custom_tools: {"write_*": {approval: none}}', 'custom_tools.write_*', '`write_file` runs without approval'),
        ('sandbox: {paths: {a: {root: nowhere}}}', 'sandbox.paths.a.root', 'the directory does not exist'),
        (
            'sandbox: {toolchains: [/usr, /nowhere]}',
            'sandbox.toolchains.1',
            'commands cannot use this toolchain: there is no such directory',
        ),
        ('sandbox: {toolchains: [/]}', 'sandbox.toolchains.0', 'the folder is the home directory, or contains it'),
        ('sandbox: {paths: {a: {root: approvals.yaml}}}', 'sandbox.paths.a.root', 'not a directory'),
        (
            'shell: {rules: [{pattern: ls}, {pattern: ls -l, approval: false}]}',
            'shell.rules.1',
            '`ls -l` never decides: the rule `ls` matches first and requires approval; move this rule up',
        ),
        (
            'shell: {rules: [{pattern: ls, approval: false}, {pattern: ls -l, approval: false}]}',
            'shell.rules.1',
            'matches first and allows the command; remove this rule',
        ),
        ('shell: {rules: [{pattern: git, allowed: false}, {pattern: git log}]}', 'shell.rules.1', 'blocks; move'),
        (
            'extends: [read-only, git]\nshell: {rules: [{pattern: ls}, {pattern: rm -r, approval: false}]}',
            'shell.rules.1',
            'the rule `rm` of the preset `read-only` (line 11) matches first and blocks; remove this rule',
        ),
        ('shell: {rules: [{pattern: pytest, approval: false}]}', 'shell.rules.0', 'written in `workspace`'),
        ('extends: [git]\nshell: {rules: [{pattern: make, approval: false}]}', 'shell.rules.0', 'written in `project`'),
        ('shell: {rules: [{pattern: npm test, approval: false}]}', 'shell.rules.0', '`npm test` runs files'),
        ('shell: {rules: [{pattern: npm, approval: false}]}', 'shell.rules.0', '`npm` runs files'),
        ('shell: {rules: [{pattern: ./x, approval: false}]}', 'shell.rules.0', '`./x` runs files'),
        ('shell: {rules: [{pattern: /usr/bin/python3.12 -V, approval: false}]}', 'shell.rules.0', 'runs files'),
        (
            'shell: {default: {approval: false}}',
            'shell.default',
            'every command that no rule matches runs without approval',
        ),
        ('shell: {network: true, rules: [{pattern: ls, approval: false}]}', 'shell.network', 'may use the network'),
    ],
)
def test_probable_mistake_is_a_warning(tool_approval, work, text, key, message):
    finished = check(tool_approval, work, text)

    found = [each for each in finished.json['findings'] if each['level'] == 'warning' and each['key'] == key]
    assert finished.status == 0
    assert finished.json['ok'] is True
    assert any(message in each['message'] for each in found), finished.json['findings']
    assert {each['line'] for each in found} == {len(text.splitlines())}


@pytest.mark.parametrize(
    'text',
    [
        'tools: {"delete_*": {approval: required}, delete_a: {approval: none}}',
        'tools: {"delete_?": {approval: blocked}, "delete_*": {approval: none}}',
        'tools: {"a*": {approval: required}, "ab*": {approval: none}, "*": {description: x}}',
        'shell: {rules: [{pattern: ls -l, approval: false}, {pattern: ls}]}',
        'shell: {rules: [{pattern: npm view, approval: false}, {pattern: ls, approval: false}, {pattern: pytest}]}',
        'sandbox: {paths: {notes: {root: notes}}}\nshell: {rules: [{pattern: pytest, approval: false}]}',
        'sandbox: {paths: {notes: {root: .}}}\nshell: {rules: [{pattern: w, sandbox_paths: [notes]}, {pattern: w}]}',
        'shell: {network: true, rules: [{pattern: ls}]}',
        'shell: {default: {allowed: false, approval: false}}',
        'extends: [default, read-only, python, node, rust, go, git]',
        'extends: [python]\nshell: {rules: [{pattern: pytest}, {pattern: cat, allowed: false}]}',
        '',
    ],
)
def test_what_may_well_be_meant_is_not(tool_approval, work, text):
    assert warnings(check(tool_approval, work, text)) == []


def test_a_root_in_another_one_is_noted(tool_approval, work):
    finished = check(tool_approval, work, 'sandbox: {paths: {all: {root: .}, notes: {root: notes}}}')

    [note] = [each for each in finished.json['findings'] if each['level'] == 'note' and each['key']]
    assert note['key'] == 'sandbox.paths.notes.root'
    assert 'this root is inside the root `all`' in note['message']


def test_a_file_elsewhere_is_printed_with_its_whole_path(tool_approval, work):
    (work / 'notes/approvals.yaml').write_text('tools: {x: {}}')

    finished = tool_approval('check', 'notes/approvals.yaml')

    assert finished.out.startswith(f'warning: {work}/notes/approvals.yaml:1: tools.x: the rule has no effect')


def test_strict_fails_where_there_are_warnings(tool_approval, work):
    assert check(tool_approval, work, 'tools: {x: {}}', '--strict').status == 1
    assert check(tool_approval, work, '{}', '--strict').status == 0


def test_a_file_elsewhere_is_checked_for_the_directory_that_is_given(tool_approval, work):
    (work / 'other.yaml').write_text('sandbox:\n  paths: {notes: {root: sub}}\n')

    finished = tool_approval('check', 'other.yaml', '--cwd', 'notes', '--json')

    assert finished.json['source'] == str(work / 'other.yaml')
    assert warnings(finished) == [('sandbox.paths.notes.root', 2)]


def test_without_a_file_there_is_nothing_to_check(tool_approval, work):
    (work / 'approvals.yaml').unlink()

    finished = tool_approval('check')

    assert finished.status == 2
    assert 'there is no approvals.yaml in' in finished.err


def test_what_cannot_be_checked_for_want_of_a_library_is_an_error(tool_approval, work, monkeypatch):
    from tool_approval import MissingExtraError

    def lacking(*arguments, **others):
        raise MissingExtraError('tree_sitter', extra='shell')

    monkeypatch.setattr('tool_approval.cli.judging.CallJudge.__init__', lacking)

    finished = check(tool_approval, work, '{}')

    assert finished.status == 2
    assert './tool_approval[shell]' in json.dumps(finished.json['findings'])


def test_what_cannot_be_read_for_want_of_a_library_is_a_failure(tool_approval, monkeypatch):
    monkeypatch.delitem(sys.modules, 'tool_approval.core.config_yaml', raising=False)
    monkeypatch.setitem(sys.modules, 'yaml', None)

    finished = tool_approval('check')

    assert (finished.status, finished.out) == (2, '')
    assert './tool_approval[yaml]' in finished.err


@pytest.mark.parametrize(
    'words', [['check'], ['trust', '--yes'], ['explain', 'x'], ['explain', 'x', '--config', 'approvals.toml']]
)
def test_every_command_says_what_to_do_about_a_file_in_toml(tool_approval, work, words):
    (work / 'approvals.yaml').rename(work / 'approvals.toml')

    finished = tool_approval(*words)

    assert finished.status == 2
    assert 'write the same keys as YAML into `approvals.yaml` instead' in finished.out + finished.err


def test_like_findings_are_printed_together(tool_approval, work):
    (work / 'approvals.yaml').write_text(
        'shell:\n'
        '  rules:\n'
        '    - {pattern: make, approval: false}\n'
        '    - {pattern: ours, approval: false}\n'
        '    - {pattern: pytest, approval: false}\n'
        '    - {pattern: theirs, approval: false}\n'
        '    - {pattern: npm test, approval: false}\n'
    )

    finished = tool_approval('check')

    shown = finished.out.splitlines()
    assert shown[0].startswith('warning: approvals.yaml:3: shell.rules.0: `make` runs files that an agent may have')
    assert shown[1] == '  the same applies to `pytest` (line 5), `npm test` (line 7)'
    assert shown[2].startswith(
        'note: approvals.yaml:4: shell.rules.1: `ours` is not a known program: the rule covers only its exact'
    )
    assert shown[3] == '  the same applies to `theirs` (line 6)'
    assert '0 errors, 3 warnings' in finished.out


@pytest.mark.parametrize(
    ('glob', 'said'),
    [
        ('./config/*', 'the glob matches nothing: no name consists of only dots or blanks'),
        ('a/. /b', 'the glob matches nothing: no name consists of only dots or blanks'),
        ('*.{key,pem}', 'the glob matches only names with brackets: `[...]` and `{...}` have no special meaning here'),
        ('[a-z].key', 'the glob matches only names with brackets: `[...]` and `{...}` have no special meaning here'),
        (
            'node_modules/**/.npmrc',
            'the glob hides nothing from commands: folders named `node_modules` are not searched',
        ),
        ('config/*', None),
        ('**/secret/', None),
        ('node_modules', None),
    ],
)
@pytest.mark.parametrize('key', ['hidden', 'visible'])
def test_a_glob_that_matches_nothing_is_warned_of(tool_approval, work, key, glob, said):
    finished = check(tool_approval, work, f'sandbox: {{{key}: ["*.x", "{glob}"]}}')

    found = [(each['key'], each['message']) for each in finished.json['findings'] if 'sandbox' in (each['key'] or '')]
    assert found == ([] if said is None else [(f'sandbox.{key}.1', f'`{glob}`: {said}')])


@pytest.mark.parametrize(
    ('rules', 'said'),
    [
        (
            '[{pattern: git commit, approval: false}]',
            ['`git commit` fails if it writes to `.git`: in the OS sandbox, no command may do that without approval'],
        ),
        (
            '[{pattern: curl -I, approval: false}]',
            ['`curl -I` fails if it uses the network: in the OS sandbox, no command may do that without approval'],
        ),
        ('[{pattern: git clone, approval: false}]', ['`git clone` fails if it uses the network']),
        ('[{pattern: curl -I, approval: false}], network: true', []),
        (
            '[{pattern: touch, approval: false}]',
            ['`touch` fails if it changes files, because every root requires approval'],
        ),
        ('[{pattern: touch, approval: false}]}\nsandbox: {paths: {a: {root: ., mode: rw, write_approval: no}}', []),
        ('[{pattern: git commit}, {pattern: curl}]', []),
        ('[{pattern: git status, approval: false}, {pattern: ls, approval: false}]', []),
        ('[{pattern: kubectl get, approval: false}]', ['`kubectl get` fails if it uses the network']),
        ('[{pattern: kubectl config view, approval: false}, {pattern: helm template, approval: false}]', []),
        ('[{pattern: git branch, approval: false}, {pattern: git tag --list, approval: false}]', []),
        ('[{pattern: git branch -D, approval: false}]', ['`git branch -D` fails if it writes to `.git`']),
        ('[{pattern: terraform fmt, approval: false}]', ['`terraform fmt` fails if it changes files']),
        ('[{pattern: terraform fmt -check, approval: false}, {pattern: black --diff, approval: false}]', []),
    ],
)
def test_what_fails_in_the_os_sandbox_is_noted(tool_approval, work, rules, said):
    finished = check(tool_approval, work, f'shell: {{rules: {rules}}}')

    found = [each['message'] for each in finished.json['findings'] if ' fails if it ' in each['message']]
    assert [message[: len(wanted)] for message, wanted in zip(found, said, strict=True)] == said


def test_a_command_that_only_looks_at_files_is_not_warned_of(tool_approval, work):
    rules = '[{pattern: terraform fmt -check, approval: false}, {pattern: tofu version, approval: false}]'

    finished = check(tool_approval, work, f'shell: {{rules: {rules}}}')

    assert [each['message'] for each in finished.json['findings'] if each['key'] is not None] == []


def test_presets_are_hinted_at_where_none_is_named(tool_approval, work):
    (work / 'Cargo.toml').touch()

    without, within = (check(tool_approval, work, text) for text in ('{}', 'extends: [go]'))

    hints = [
        [each['message'] for each in finished.json['findings'] if 'extends no preset' in each['message']]
        for finished in (without, within)
    ]
    assert hints == [
        ['the file extends no preset; `extends: [default, rust]` lets commands read, test and check without approval'],
        [],
    ]

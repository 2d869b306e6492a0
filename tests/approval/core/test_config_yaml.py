"""YAML in; the line of each mistake out; nothing that means more than it says."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.core.config import parse_config

from tests.tables import table
from tool_approval import ApprovalConfigError, ApprovalPolicy, PolicyConfig, ToolRule

pytest.importorskip('yaml')

FILE = """\
# Who may do what.
default: required

tools:
  read_file: {approval: none}
  write_file:
    approval: required
    description: >
      Writes a file,
      whole.
  "rm*":
    approval: blocked
  format_output:
  other: {}

auto_grant:
  container:
    - fs.write
    - net.external
"""
CONFIG = PolicyConfig(
    default='required',
    tools={
        'read_file': ToolRule(approval='none'),
        'write_file': ToolRule(approval='required', description='Writes a file, whole.\n'),
        'rm*': ToolRule(approval='blocked'),
        'format_output': ToolRule(),
        'other': ToolRule(),
    },
    auto_grant={'container': ['fs.write', 'net.external']},
)


def mistake_in(text):
    with pytest.raises(ApprovalConfigError) as mistake:
        parse_config(text, source='policy.yaml')
    assert mistake.value.source == 'policy.yaml'
    assert str(mistake.value).startswith('policy.yaml:')
    return mistake.value


def test_yaml_file_is_read():
    assert parse_config(FILE) == CONFIG


@pytest.mark.parametrize('indent', [None, 2])
@pytest.mark.parametrize('is_ascii', [True, False])
def test_json_is_read_too(indent, is_ascii):
    config = PolicyConfig(tools={'rm': ToolRule(approval='blocked', description='löscht \U0001f600 "alles"\n')})

    text = json.dumps(config.model_dump(), indent=indent, ensure_ascii=is_ascii)

    assert parse_config(text) == config


@pytest.mark.parametrize('text', ['', '\n', '# nothing\n', '---\n', '---\n# nothing\n', 'null', '{}', '~', '\ufeff{}'])
def test_an_empty_file_configures_nothing(text):
    assert parse_config(text) == PolicyConfig()


@pytest.mark.parametrize('newline', ['\n', '\r\n', '\r'])
def test_lines_may_end_as_on_any_system(newline):
    assert parse_config(FILE.replace('\n', newline)) == CONFIG
    assert mistake_in(newline.join(['default: none', 'tools:', '  rm: {aproval: none}'])).line == 3


@table(
    ('old', 'new', 'key', 'line', 'problem'),
    [
        ('default: required', 'defalt: required', 'defalt', 2, 'did you mean `default`?'),
        ('default: required', 'default: blocked', 'default', 2, 'unknown value `blocked`'),
        ('default: required', 'default: no', 'default', 2, 'YAML reads yes, no, on and off as true and false'),
        ('default: required', 'default: [required]', 'default', 2, 'not a string'),
        ('default: required', 'default: required\ndefault: none', 'default', 3, 'duplicate key'),
        ('default: required', 'default: &x required', 'default', 2, 'anchors, aliases and tags'),
        ('tools:', 'tool:', 'tool', 4, 'did you mean `tools`?'),
        ('{approval: none}', '{approval: non}', 'tools.read_file.approval', 5, 'did you mean `none`?'),
        ('{approval: none}', '{approval: no}', 'tools.read_file.approval', 5, 'unknown value False'),
        ('{approval: none}', '{approval: off}', 'tools.read_file.approval', 5, 'unknown value False'),
        ('{approval: none}', '{approval: On}', 'tools.read_file.approval', 5, 'unknown value True'),
        ('{approval: none}', '{approval: 1}', 'tools.read_file.approval', 5, 'not a string'),
        ('{approval: none}', '{aproval: none}', 'tools.read_file.aproval', 5, 'did you mean `approval`?'),
        ('{approval: none}', '{approval: none, approval: none}', 'tools.read_file.approval', 5, 'duplicate key'),
        ('{approval: none}', '{\n\n approval: never}', 'tools.read_file.approval', 7, 'unknown value `never`'),
        ('{approval: none}', '{approval:\n   never}', 'tools.read_file.approval', 5, 'unknown value `never`'),
        ('{approval: none}', 'none', 'tools.read_file', 5, 'not a rule'),
        ('{approval: none}', '[none]', 'tools.read_file', 5, 'not a rule'),
        ('{approval: none}', '!!map {approval: none}', 'tools.read_file', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{approval: !!str none}', 'tools.read_file.approval', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{approval: ! none}', 'tools.read_file.approval', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{!!str approval: none}', 'tools.read_file', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{&a approval: none}', 'tools.read_file', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '*rule', 'tools.read_file', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{*rule : none}', 'tools.read_file', 5, 'anchors, aliases and tags'),
        ('{approval: none}', '{<<: {approval: none}}', 'tools.read_file', 5, 'a key that is not a string'),
        ('{approval: none}', '{[approval]: none}', 'tools.read_file', 5, 'a key that is not a string'),
        ('{approval: none}', '{{a: b}: none}', 'tools.read_file', 5, 'a key that is not a string'),
        (
            '{approval: none}',
            '{approval: {required: true}}',
            'tools.read_file.approval',
            5,
            'not a string',
        ),
        ('    approval: required', '    approval: Required', 'tools.write_file.approval', 7, '`required`'),
        ('    approval: required', '    aproval: required', 'tools.write_file.aproval', 7, 'unknown key'),
        (
            '    description: >',
            '    description: |\n      one\n    approval: >',
            'tools.write_file.approval',
            10,
            'duplicate key',
        ),
        ('    description: >', '    describe: >', 'tools.write_file.describe', 8, 'unknown key'),
        ('  "rm*":', '  write_file:', 'tools.write_file', 11, 'duplicate key'),
        ('  "rm*":', '  404:', 'tools', 11, 'a key that is not a string; quote it'),
        ('  "rm*":', '  yes:', 'tools', 11, 'a key that is not a string; quote it'),
        ('  "rm*":', '  null:', 'tools', 11, 'a key that is not a string; quote it'),
        ('  "rm*":', '  2026-01-02:', 'tools', 11, 'a key that is not a string; quote it'),
        ('  "rm*":', '  ? {a: b}\n  :', 'tools', 11, 'a key that is not a string; quote it'),
        ('  format_output:', '  format_output: yes', 'tools.format_output', 13, 'not a rule'),
        (
            '  other: {}',
            '  other: {description: 2026-01-02}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        (
            '  other: {}',
            '  other: {description: 0x1f}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        (
            '  other: {}',
            '  other: {description: 1.5}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        (
            '  other: {}',
            '  other: {description: 1:30}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        (
            '  other: {}',
            '  other: {description: =}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        (
            '  other: {}',
            '  other: {description: yes}',
            'tools.other.description',
            14,
            'the value must be a string; quote it',
        ),
        ('auto_grant:', 'autogrant:', 'autogrant', 16, 'did you mean `auto_grant`?'),
        ('  container:', '  container: all\n  other:', 'auto_grant.container', 17, 'not a list'),
        ('    - net.external', '    - 5', 'auto_grant.container.1', 19, 'the value must be a string; quote it'),
        (
            '    - net.external',
            '    -\n      [net]',
            'auto_grant.container.1',
            20,
            'the value must be a string; quote it',
        ),
        (
            '    - net.external',
            '    - {net: external}',
            'auto_grant.container.1',
            19,
            'the value must be a string; quote it',
        ),
        ('    - net.external', '    - *x', 'auto_grant.container.1', 19, 'anchors, aliases and tags'),
        ('    - net.external', '    - !!binary aGVsbG8=', 'auto_grant.container.1', 19, 'anchors, aliases and tags'),
        ('    - net.external', '    - x\n---\ndefault: none', None, 20, 'a second document'),
        ('    - net.external', '\t- x', None, 19, "not YAML: found character '\\t'"),
        ('    - net.external', '    - "x', None, 20, 'not YAML: found unexpected end of stream'),
        ('    - net.external', '   x', None, 19, 'not YAML: expected <block end>'),
    ],
)
def test_a_typo_is_an_error_that_names_key_file_and_line(old, new, key, line, problem):
    assert FILE.count(old) == 1

    mistake = mistake_in(FILE.replace(old, new))

    assert (mistake.key, mistake.line) == (key, line)
    assert problem in mistake.problem
    assert str(mistake).startswith(f'policy.yaml:{line}: ')


def test_of_two_mistakes_the_first_in_the_file_is_named():
    mistake = mistake_in('tools:\n  rm:\n    aproval: none\nunknown: 1\ndefault: maybe\n')

    assert (mistake.key, mistake.line) == ('tools.rm.aproval', 3)


LAUGHS = 'a: &a [x]\n' + ''.join(
    f'{b}: &{b} [{", ".join([f"*{a}"] * 9)}]\n' for a, b in zip('abcdefgh', 'bcdefghi', strict=True)
)

HOSTILE = {
    'billion laughs': (LAUGHS, 1),
    'deep flow sequence': ('[' * 90_000, 1),
    'deep flow mapping': ('{a: ' * 20_000, 1),
    'deep block mapping': (''.join(f'{" " * depth}a:\n' for depth in range(300)), 18),
    'deep block sequence': ('- ' * 40_000, 1),
    'deep keys': ('? ' * 40_000, 1),
    'deep keys in flow': ('{? ' * 30_000, 1),
    'many tokens': ('tools:\n' + '  {' + 'a,' * 40_000, 2),
    'many anchors': ('&a ' * 30_000, 1),
    'NUL': ('default: none\ntools:\n  a\0: {}', 3),
    'escape': ('default: none\n\x1b[2J', 2),
    'DEL': ('\x7f', 1),
    'lone surrogate': ('default: none\n\n"\ud800": 1', 3),
    'binary': (bytes(range(256)).decode('latin-1'), 1),
    'escape beyond Unicode': ('default: none\ntools:\n  "a\n  b\\U00110000": 1', 4),
    'escape far beyond Unicode': ('"\\UFFFFFFFF": 1', 1),
    'half a character as value': ('default: none\ntools: {a: {description: "\\ud800"}}', 2),
    'half a character as key': ('default: none\n"\\udc00": 1', 2),
    'python object': ('tools: !!python/object/apply:os.system ["exit 1"]', 1),
    'python object with keys': ('default: none\ntools: !!python/object:os.system {a: b}', 2),
    'python name': ('default: !!python/name:os.system', 1),
    'local tag': ('!policy {}', 1),
    'verbatim tag': ('default: !<tag:yaml.org,2002:str> none', 1),
    'version of thousands of digits': (f'%YAML {"9" * 5000}.1\n---\n', 1),
    'unknown version': ('%YAML 9.9\n---\n', 1),
    'tag handle as long as a file': (f'!{"x" * 90_000}!a b', 1),
    'number of thousands of digits': (f'default: {"9" * 5000}', 1),
    'number in base 60': (f'default: 9{":59" * 30_000}', 1),
    'date that is none': ('default: 2026-99-99', 1),
    'infinity': ('default: .inf', 1),
    'merge key': ('<<: {default: none}', 1),
    'text': ('just text', 1),
    'list': ('- default', 1),
    'number': ('\n5', 2),
    'two documents': ('--- {}\n--- {}', 2),
    'huge key': ('x' * 90_000 + ': 1', 1),
    'huge value': ('default: "' + 'x' * 90_000 + '"', 1),
    'huge list': ('tools: [' + '"a",' * 20_000 + ']', 1),
    'huge text': ('x' * 100_001, None),
    'many mistakes': ('tools:\n' + ''.join(f'  t{number}: {{a: 1}}\n' for number in range(4000)), 2),
}


@table(('text', 'line'), HOSTILE.values())
def test_hostile_yaml_is_one_error_and_soon(text, line):
    started = time.process_time()

    mistake = mistake_in(text)

    assert mistake.line == line
    assert len(str(mistake)) < 500
    # A generous bound, to be met on any machine: some of these take PyYAML minutes where nothing stops it.
    assert time.process_time() - started < 20


def test_a_policy_of_a_text_is_the_policy_of_its_configuration():
    policy = ApprovalPolicy.from_yaml(FILE, source='policy.yaml')

    assert policy.config == CONFIG
    assert policy.rule_for('rmdir').approval == 'blocked'
    assert ApprovalPolicy.from_yaml(policy.config.model_dump_json()).config == CONFIG


def test_thousands_of_rules_fit():
    rules = ''.join(f'  tool_{number}: {{approval: none}}\n' for number in range(2000))

    assert len(parse_config(f'tools:\n{rules}').tools) == 2000


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.text('ab:-?[]{},&*!|>\'"%@` \n\t#=<0.~\\', max_size=40))
def test_any_text_is_a_configuration_or_one_error(text):
    try:
        config = parse_config(text, source='policy.yaml')
    except ApprovalConfigError as mistake:
        assert mistake.source == 'policy.yaml'
        assert mistake.line is None or 1 <= mistake.line <= len(text) + 1
    else:
        assert config == PolicyConfig()


def test_a_file_that_does_not_exist_is_not_looked_for():
    assert mistake_in('policy.yaml').problem == 'the value must be a mapping of keys to values'

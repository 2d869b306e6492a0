"""YAML is read as plain values, and an error names the line of the mistake."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.core.config import parse_document, read_config

from tests.cases import rows
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


def parse_config(text, source=None):
    document, line_of = parse_document(text, source=source)
    return read_config(document, source=source, line_of=line_of)


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


@table(('why', 'old', 'new', 'key', 'line', 'problem'), rows(Path(__file__).with_name('mistakes.toml'), 'mistakes'))
def test_a_typo_is_an_error_that_names_key_file_and_line(why, old, new, key, line, problem):
    assert FILE.count(old) == 1

    mistake = mistake_in(FILE.replace(old, new))

    assert (mistake.key or '', mistake.line) == (key, line), why
    assert problem in mistake.problem
    assert str(mistake).startswith(f'policy.yaml:{line}: ')


def test_first_of_two_mistakes_in_the_file_is_named():
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


@pytest.mark.parametrize('name', ['policy.yaml', 'rules/policy.YML', 'policy.json'])
def test_a_file_that_does_not_exist_is_not_looked_for(name):
    problem = 'this is the name of a file, not a document; pass the text of the file'
    assert mistake_in(name).problem == problem

"""Rules that are added to the text of a settings file: where, and that nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_approval.core.config import parse_document
from tool_approval.settings.adding import rule_lines, with_rule

from tool_approval import ApprovalConfigError

RULE = {'approval': 'none'}
SHELL = {'pattern': 'git status', 'approval': False}


@pytest.mark.parametrize(
    ('text', 'result'),
    [
        ('', 'tools:\n  send: {approval: none}\n'),
        ('# only this', '# only this\ntools:\n  send: {approval: none}\n'),
        ('tools:\n', 'tools:\n  send: {approval: none}\n'),
        ('tools: # c\n\nmode: strict\n', 'tools: # c\n  send: {approval: none}\n\nmode: strict\n'),
        (
            'tools:\n    a: {approval: none} # x\n\n# y\nmode: strict\n',
            'tools:\n    a: {approval: none} # x\n    send: {approval: none}\n\n# y\nmode: strict\n',
        ),
        ('tools: {a: {}}', 'tools: {a: {}, send: {approval: none}}'),
        ('tools: {}\n', 'tools: {send: {approval: none}}\n'),
        ('{"mode": "strict"}', '{"mode": "strict", tools: {send: {approval: none}}}'),
        ('mode: strict\r\n', 'mode: strict\r\ntools:\r\n  send: {approval: none}\r\n'),
        ('---\nmode: strict\n...\n', '---\nmode: strict\ntools:\n  send: {approval: none}\n...\n'),
        (
            'tools:\n  a:\n    description: |\n      x\n\n# c\nmode: strict\n',
            'tools:\n  a:\n    description: |\n      x\n\n  send: {approval: none}\n# c\nmode: strict\n',
        ),
        ('tools:\n  a:\n', 'tools:\n  a:\n  send: {approval: none}\n'),
    ],
)
def test_a_rule_of_a_mapping_is_added_at_its_end(text, result):
    assert with_rule(text, ['tools'], 'send', RULE) == result


@pytest.mark.parametrize(
    ('text', 'result'),
    [
        ('mode: strict\n', 'mode: strict\nshell:\n  rules:\n    - {pattern: "git status", approval: false}\n'),
        (
            'shell:\n  rules:\n  - {pattern: ls}\n  # c\n',
            'shell:\n  rules:\n  - {pattern: ls}\n  - {pattern: "git status", approval: false}\n  # c\n',
        ),
        (
            'shell:\n  network: false\nmode: strict\n',
            'shell:\n  network: false\n  rules:\n    - {pattern: "git status", approval: false}\nmode: strict\n',
        ),
        ('shell: {rules: []}', 'shell: {rules: [{pattern: "git status", approval: false}]}'),
        (
            'shell: {rules: [{pattern: ls}]}',
            'shell: {rules: [{pattern: ls}, {pattern: "git status", approval: false}]}',
        ),
        ('shell: {}', 'shell: {rules: [{pattern: "git status", approval: false}]}'),
        ('{}', '{shell: {rules: [{pattern: "git status", approval: false}]}}'),
    ],
)
def test_a_rule_of_a_list_is_added_at_its_end(text, result):
    assert with_rule(text, ['shell', 'rules'], None, SHELL) == result


@pytest.mark.parametrize('text', ['tools: null\n', 'tools: {a: {},}\n', 'mode: !x y', 'a: &b c'])
def test_a_text_without_a_place_for_the_rule_is_an_error(text):
    with pytest.raises(ApprovalConfigError):
        with_rule(text, ['tools'], 'send', RULE)


def test_keys_and_values_that_look_like_something_else_are_quoted():
    lines = rule_lines(['tools'], 'no', {'is': ['yes', 'a b', 'x', '1', 1, True, None, '', 'a: b', '\x1b', 'é']})

    assert lines == [
        'tools:',
        '  "no": {is: ["yes", "a b", x, "1", 1, true, null, "", "a: b", "\\u001b", "\\u00e9"]}',
    ]


@given(st.text(min_size=1), st.text(), st.sampled_from(['', 'tools:\n  a: {}\n', 'tools: {a: {}}\n']))
def test_any_texts_are_read_as_they_were_given_or_refused(name, value, text):
    before = parse_document(text)[0].get('tools', {})

    try:
        result = with_rule(text, ['tools'], name, {'description': value})
    except ApprovalConfigError:
        assert name in before or not (name + value).isprintable()
        return

    assert parse_document(result)[0] == {'tools': {**before, name: {'description': value}}}

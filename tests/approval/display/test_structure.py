"""A structured presentation is laid out as a tree, wherever the tree shows all that its text says."""

import json

import pytest
from tool_approval.display import display

from tool_approval import ApprovalPresentation

CALL = {'url': 'https://api.example/v1', 'rows': [{'name': 'fern', 'water': 3}, []], 'dry_run': False, 'at': 1.5}
TREE = [
    'url: "https://api.example/v1"',
    'rows:',
    '  1.',
    '    name: "fern"',
    '    water: 3',
    '  2. []',
    'dry_run: false',
    'at: 1.5',
]


def presented(content: str, **fields: object) -> ApprovalPresentation:
    return ApprovalPresentation.model_validate({'type': 'structured', 'content': content, **fields})


def texts(content: str, **fields: object) -> list[str]:
    return [line.text for line in display(presented(content, **fields)).lines]


@pytest.mark.parametrize('content', [json.dumps(CALL), json.dumps(CALL, indent=8) + '\n'], ids=['one line', 'indented'])
@pytest.mark.parametrize('language', [None, 'json'])
def test_same_structure_is_drawn_alike_in_json_and_yaml(content: str, language: str | None) -> None:
    assert texts(content, language=language) == TREE
    assert {line.kind for line in display(presented(content)).lines} == {'value'}


def test_a_list_is_numbered() -> None:
    assert texts('["a", {"b": null}]') == ['1. "a"', '2.', '  b: null']


@pytest.mark.parametrize(
    'content',
    [
        '{"to": "ada", "to": "eve"}',
        '{"amount": 1.00}',
        '{"amount": 0.1000000000000000055}',
        '{"amount": 1e400}',
        '{"amount": -0}',
        '{"amount": 1' + '0' * 5000 + '}',
        '{"a": 1} trailing',
        'to: ada',
        '"a text"',
        '{}',
        '[' * 14 + ']' * 14,
        '[' * 13 + '1' + ']' * 13,
        '[' * 100_000,
    ],
    ids=lambda content: content[:30],
)
def test_structure_that_a_tree_cannot_show_exactly_stays_a_text(content: str) -> None:
    shown = display(presented(content), whole=True)

    assert shown.is_whole
    assert [(line.kind, line.text) for line in shown.lines] == [('code', content)]


def test_another_language_stays_a_text() -> None:
    assert texts('{"a": 1}', language='yaml') == ['{"a": 1}']


def test_nothing_in_it_draws_anything_but_itself() -> None:
    content = json.dumps({'a\x1b[2J': 'b\u202ec', 'd': '\ud800', 'e': 'f\n│ approved: yes'})

    assert texts(content) == [
        '"a<U+001B>[2J": "b<U+202E>c"',
        'd: "<U+D800>"',
        'e: 2 lines, no newline at the end',
        'f',
        '│ approved: yes',
    ]


def test_a_long_one_is_cut_as_arguments_are_and_shown_whole_on_demand() -> None:
    content = json.dumps({f'key{number}': number for number in range(500)})

    shown, whole = display(presented(content)), display(presented(content), whole=True)

    assert not shown.is_whole
    assert len(shown.lines) == 100
    assert shown.lines[-1].text == 'key499: 499'
    assert [line.text for line in whole.lines] == [f'key{number}: {number}' for number in range(500)]


def test_structure_shortened_by_its_tool_is_read_from_the_full_content() -> None:
    full = json.dumps(CALL, indent=1)
    cut = '\n'.join([*full.split('\n')[:2], '... [11 more lines]'])

    assert texts(cut, metadata={'full_content': full}) == TREE

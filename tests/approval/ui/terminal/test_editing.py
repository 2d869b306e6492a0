"""Arguments as a text that is edited."""

import json
import sys

import pytest
from tool_approval.answering import UnreadableArguments
from tool_approval.ui.terminal.editing import LONGEST_TEXT, as_text, is_yaml, read_text
from tool_approval.ui.terminal.yaml_text import LONGEST


def test_arguments_are_json_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'tool_approval.ui.terminal.yaml_text', None)

    text = as_text('t', {'path': 'a'})

    assert not is_yaml({'path': 'a'})
    assert json.loads(text) == {'path': 'a'}
    assert read_text(text, as_yaml=False) == {'path': 'a'}


def test_arguments_too_long_for_yaml_are_json() -> None:
    args = {'text': 'x' * LONGEST}

    assert json.loads(as_text('t', args)) == args


@pytest.mark.parametrize(
    'args', [{'a': 'x vim: set tabstop=13 :'}, {'a': 'x vim: set tabstop=13 :', 'b': 'y' * LONGEST}]
)
def test_first_and_last_lines_carry_no_model_text_for_vim(args: dict[str, str]) -> None:
    lines = as_text('x vim: set tabstop=13 :', args).splitlines()

    assert not any('vim:' in line for line in [*lines[:5], *lines[-5:]])
    assert any('vim:' in line for line in lines)


def test_a_text_has_an_end() -> None:
    with pytest.raises(UnreadableArguments, match='longer than 1000000 characters'):
        read_text('x' * (LONGEST_TEXT + 1), as_yaml=True)

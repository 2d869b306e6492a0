"""Tools of MCP servers that change after they were accepted."""

import json

import pytest
from tool_approval.storage import pinned_tools
from tool_approval.storage.pinned_tools import PinnedTools

from tests.approval.spoilt_files import each_spoilt_file
from tool_approval import StoreError

READ = {'name': 'read', 'description': 'Read.', 'inputSchema': {'n': 1}}
CHANGED = {**READ, 'inputSchema': {'n': 1.0}}


@pytest.fixture
def pins(tmp_path):
    return PinnedTools(tmp_path / 'mcp', 'notes')


def test_a_new_tool_is_accepted_and_a_changed_one_is_withheld(pins, tmp_path):
    assert pins.withheld([READ]) == set()
    assert pins.changes() == {}
    assert pins.withheld([CHANGED, {**READ, 'name': 'new'}]) == {'read'}
    assert pins.withheld([CHANGED, READ]) == {'read'}
    assert PinnedTools(tmp_path / 'mcp', 'notes').changes() == {'read': (READ, CHANGED)}
    assert PinnedTools(tmp_path / 'mcp', 'others').withheld([CHANGED]) == set()


def test_a_tool_that_is_as_it_was_is_offered_again(pins):
    pins.withheld([READ])
    pins.withheld([CHANGED])

    assert pins.withheld([READ]) == set()
    assert pins.changes() == {}


def test_only_the_change_that_was_shown_is_accepted(pins):
    pins.withheld([READ])
    pins.withheld([CHANGED])
    pins.accept([{**READ, 'inputSchema': {'n': True}}, {**READ, 'name': 'unknown'}])

    assert pins.withheld([CHANGED]) == {'read'}

    pins.accept([CHANGED])

    assert pins.withheld([CHANGED]) == set()
    assert pins.withheld([READ]) == {'read'}


@each_spoilt_file
def test_a_file_that_others_could_have_written_is_not_used(pins, tmp_path, spoil, reason):
    pins.withheld([READ])
    spoil(tmp_path / 'mcp' / 'notes.json')

    with pytest.raises(StoreError, match=reason):
        pins.withheld([READ])


@pytest.mark.parametrize('text', ['no JSON', '{"version": 2}', json.dumps({'version': 1, 'changed': {'a': READ}})])
def test_a_corrupt_file_is_an_error(pins, tmp_path, text):
    pins.withheld([READ])
    (tmp_path / 'mcp' / 'notes.json').write_text(text)

    with pytest.raises(StoreError, match='corrupt'):
        pins.changes()


def test_a_server_cannot_fill_the_disk(pins, monkeypatch):
    monkeypatch.setattr(pinned_tools, '_MOST_BYTES', 1000)
    pins.withheld([READ])

    with pytest.raises(StoreError, match='more than 1000 bytes'):
        pins.withheld([{**READ, 'name': 'x' * 1000}])

    assert pins.withheld([CHANGED]) == {'read'}

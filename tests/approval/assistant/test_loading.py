"""The user's own agent."""

import sys

import pytest
from tool_approval.assistant.build import load_agent
from tool_approval.assistant.errors import AssistantError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'path', list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_agent_is_found_in_the_directory_first(folder):
    (folder / 'my_assistant.py').write_text("from pydantic_ai import Agent\nagent = Agent(name='mine')\n")

    assert load_agent('my_assistant:agent', directory=folder).name == 'mine'
    assert load_agent('my_assistant:agent', directory=folder).name == 'mine'


@pytest.mark.parametrize('place', ['', 'module', ':agent', 'module:', 'a b:agent', '../x:agent', 'a..b:c', 'a:b.c'])
def test_name_without_an_agent_is_refused(folder, place):
    with pytest.raises(AssistantError, match='does not name an agent'):
        load_agent(place, directory=folder)


def test_a_module_that_is_not_there_is_named(folder):
    with pytest.raises(AssistantError, match="there is no module 'no_such_assistant'"):
        load_agent('no_such_assistant:agent', directory=folder)


def test_a_module_that_the_module_lacks_is_named(folder):
    (folder / 'needs_more.py').write_text('import no_such_library\n')

    with pytest.raises(AssistantError, match="there is no module 'no_such_library'"):
        load_agent('needs_more:agent', directory=folder)


def test_failing_import_is_reported(folder):
    (folder / 'breaks.py').write_text('raise RuntimeError("no weather today")\n')

    with pytest.raises(AssistantError, match='RuntimeError: no weather today'):
        load_agent('breaks:agent', directory=folder)


@pytest.mark.parametrize(('name', 'kind'), [('nothing', 'undefined'), ('text', 'a str')])
def test_object_other_than_an_agent_is_refused(folder, name, kind):
    (folder / 'other_things.py').write_text("text = 'agent'\n")

    with pytest.raises(AssistantError, match=f'is {kind}, not an agent'):
        load_agent(f'other_things:{name}', directory=folder)

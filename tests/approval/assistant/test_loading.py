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


@pytest.mark.parametrize(
    ('module', 'name', 'problem'),
    [
        (None, 'agent', "there is no module 'mine'"),
        ('import no_such_library', 'agent', "there is no module 'no_such_library'"),
        ('raise RuntimeError("no weather today")', 'agent', 'RuntimeError: no weather today'),
        ("text = 'agent'", 'nothing', 'is undefined, not an agent'),
        ("text = 'agent'", 'text', 'is a str, not an agent'),
    ],
)
def test_module_without_that_agent_is_refused_with_the_reason(folder, module, name, problem):
    if module is not None:
        (folder / 'mine.py').write_text(f'{module}\n')

    with pytest.raises(AssistantError, match=problem):
        load_agent(f'mine:{name}', directory=folder)

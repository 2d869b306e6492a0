"""Short stories in which an agent asks: real processes and files, and an embedded model that follows a script."""

from collections.abc import Mapping
from importlib import import_module

from .scene import Scene as Scene
from .scene import Story as Story

STORIES: Mapping[str, str] = {
    'port': 'find what listens on a port, see the result, stop that very process',
    'edit': 'look at diffs before files change',
    'nested': 'an agent inside a tool: who asks is shown',
    'batch': 'several calls of one response',
}
"""What each story is about, in a line. Each is a module here, with a `STORY`."""


def load_story(name: str) -> Story:
    """The story of that name.

    Raises:
        KeyError: There is none.
    """
    if name not in STORIES:
        raise KeyError(name)
    return import_module(f'.{name}', __package__).STORY

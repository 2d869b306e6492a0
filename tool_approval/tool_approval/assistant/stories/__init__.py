"""Short stories in which an agent asks: real processes and files, and an embedded model that follows a script."""

from collections.abc import Mapping

from .files import BATCH, EDIT, NESTED
from .port import PORT
from .scene import Scene as Scene
from .scene import Story as Story

STORIES: Mapping[str, Story] = {'port': PORT, 'edit': EDIT, 'nested': NESTED, 'batch': BATCH}
"""Each story, by the name that the command line takes."""


def load_story(name: str) -> Story:
    """The story of that name.

    Raises:
        KeyError: There is none.
    """
    return STORIES[name]

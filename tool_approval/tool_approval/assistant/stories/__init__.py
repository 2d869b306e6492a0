"""Short stories in which an agent asks: real processes and files, and an embedded model that follows a script."""

from collections.abc import Mapping

from .files import BATCH, EDIT, NESTED
from .port import open_port
from .scene import Story

STORIES: Mapping[str, Story] = {'port': open_port, 'edit': EDIT, 'nested': NESTED, 'batch': BATCH}
"""Each story, by the name that the command line takes."""

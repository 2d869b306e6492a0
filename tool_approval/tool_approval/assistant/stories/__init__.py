"""Short stories in which an agent asks for approval. Processes and files are real, but the model follows a script."""

from collections.abc import Mapping

from .files import open_batch, open_edit, open_nested
from .port import open_port
from .scene import Story

STORIES: Mapping[str, Story] = {'port': open_port, 'edit': open_edit, 'nested': open_nested, 'batch': open_batch}
"""Stories by name, as given on the command line."""

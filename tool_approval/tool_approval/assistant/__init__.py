"""The agent behind `tool-approval run`, and the stories of `tool-approval demo`; importing it needs the extra `cli`."""

import os

from .errors import check_extras

check_extras()
# The framework advertises with a banner on standard error, which would stand between the lines of the talk.
os.environ['PYDANTIC_AI_NO_BANNER'] = '1'

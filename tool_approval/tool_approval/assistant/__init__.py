"""Implement the agent of `tool-approval run` and the stories of `tool-approval demo`. The package needs the extra
`cli`.
"""

import os

from .errors import check_extras

check_extras()
# Without this, Pydantic AI prints a banner to standard error, in the middle of the conversation.
os.environ['PYDANTIC_AI_NO_BANNER'] = '1'

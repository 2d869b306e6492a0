"""What some releases of the host lack."""

from __future__ import annotations

import inspect

import pydantic_ai
from pydantic_ai import CallDeferred, messages

HAS_QUESTIONS = 'kind' in inspect.signature(CallDeferred).parameters
"""Whether a deferred call can be a question."""
RESUMES_BESIDE_OUTPUT_CALLS = tuple(int(number) for number in pydantic_ai.__version__.split('.')[:2]) >= (2, 68)
"""Whether a response with a failed output call can be resumed at all.

Older hosts count the answer to the output call as a result nobody asked for. Chosen: the newest release these tests
run on; where between 2.0 and it the limit went away does not matter here.
"""

TAKES_RETRY_PARTS = not hasattr(messages.RetryPromptPart, '__deprecated__')
"""Whether a `RetryPromptPart` can be made without a warning."""

"""What happens without an OS sandbox."""

from typing import Literal

OSSandboxFallback = Literal['fail_fast', 'refuse_tools']
"""What happens where a backend is required and none works: nothing starts, or file and shell tools refuse."""

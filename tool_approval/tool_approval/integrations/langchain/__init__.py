"""Ask for approval in LangChain: for one tool, or for all tools of an agent."""

try:
    import langchain as _host
except ImportError:
    from tool_approval.core.errors import MissingExtraError

    raise MissingExtraError('langchain', extra='langchain') from None

from .middleware import ApprovalMiddleware
from .wrapper import ApprovalToolWrapper

__all__ = ('ApprovalMiddleware', 'ApprovalToolWrapper')

del _host

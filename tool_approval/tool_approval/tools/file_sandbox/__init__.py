"""Rules for paths in Python: which files an agent may use, and that no other is meant by the time it does."""

from .config import PathApproval, PathConfig, SandboxConfig
from .operations import perform
from .problems import FileToolError
from .rules import Operation
from .sandbox import Access, Decision, FileSandbox
from .tools import FileTool, FileTools

__all__ = (
    'Access',
    'Decision',
    'FileSandbox',
    'FileTool',
    'FileToolError',
    'FileTools',
    'Operation',
    'PathApproval',
    'PathConfig',
    'SandboxConfig',
    'perform',
)

"""What can go wrong, drawn as a tree.

```
ApprovalError
├── ApprovalConfigError (ValueError)     the configuration says something that nobody can mean
├── NotCanonicalError (ValueError)       a value has no single JSON form, so no approval can be bound to it
├── StoreError                           remembered approvals cannot be trusted or kept
├── AuditError                           the audit log cannot be trusted or written
├── MissingExtraError (ImportError)      an optional library is not installed
├── AliasError (ImportError)             `compat`: the old module name means another module already
├── TrustError                           `settings`: what is trusted cannot be read or kept
├── FileToolError                        `tools.file_sandbox`: a file cannot be used; for the model to read
├── ExecutionNotRepeated                 the ledger has a call of which no result can be returned
├── InboxError                           `inbox`: an answer does not count, or a request cannot be kept
├── SlackUnavailable, SlackRefused       `ui.slack`: Slack cannot be asked, or never takes a message
├── AssistantError                       the command `run`: it cannot be started
├── OSSandboxError                       `os_sandbox`: a profile cannot be enforced
│   └── OSSandboxUnavailable             nothing here can confine a command
└── ApprovalRefused (PermissionError)    code that runs a tool itself is told that it may not
    ├── ApprovalBlocked                  by policy; nobody was asked
    └── ApprovalDenied                   by an approver, a mode, or because nobody could be asked
```

A denial is a decision, not an exception, wherever somebody can act on it: only what stands between a caller and a
tool (`execute_tool`, the compatibility layer) raises one.
"""

from __future__ import annotations

from typing import Any


class ApprovalError(Exception):
    """The root of everything this package raises. Copying and pickling keep the facts and the sentence."""

    def __reduce__(self) -> tuple[Any, ...]:
        """See `pickle`."""
        # What is called by default is the constructor with the sentence, and ours take the facts.
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(kind: type[ApprovalError], args: tuple[object, ...], facts: dict[str, Any]) -> ApprovalError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class ApprovalConfigError(ApprovalError, ValueError):
    """The configuration says something that nobody can mean."""

    def __init__(
        self, problem: str, *, key: str | None = None, source: str | None = None, line: int | None = None
    ) -> None:
        """Say where the mistake is.

        Args:
            problem: What is wrong, and what would be right.
            key: The path to the key at fault, such as `tools.rm.approval`.
            source: The file it stands in.
            line: The line in that file, from 1.
        """
        self.problem = problem
        self.key = key
        self.source = source
        self.line = line
        place = ':'.join(str(part) for part in (source, line) if part is not None)
        super().__init__(': '.join(part for part in (place, key, problem) if part))


class NotCanonicalError(ApprovalError, ValueError):
    """A value has no single JSON form, so nothing can tell whether two of them are the same."""

    def __init__(self, problem: str) -> None:
        """Say what stands in the way; never the value itself, which may be a secret."""
        self.problem = problem
        super().__init__(f'no canonical JSON: {problem}')


class StoreError(ApprovalError):
    """Remembered approvals cannot be trusted or kept. Whatever the file holds, it approves nothing."""

    def __init__(self, path: str, problem: str) -> None:
        """Name the file, or nothing where there is none, and what is wrong with it."""
        self.path = path
        self.problem = problem
        super().__init__(f'remembered approvals in {path!r}: {problem}' if path else problem)


class AuditError(ApprovalError):
    """The audit log cannot be trusted or written. What depends on the line does not run."""

    def __init__(self, path: str, problem: str) -> None:
        """Name the file and what is wrong with it."""
        self.path = path
        self.problem = problem
        super().__init__(f'audit log {path!r}: {problem}')


class MissingExtraError(ApprovalError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, *, extra: str) -> None:
        """Name the library and the extra that brings it."""
        self.library = library
        self.extra = extra
        super().__init__(f"{library!r} is not installed; install it with: pip install 'tool-approval[{extra}]'")


class ApprovalRefused(ApprovalError, PermissionError):
    """A tool may not run. Nothing of it has."""

    _verb = 'Refused'

    def __init__(self, tool_name: str, reason: str) -> None:
        """Name the tool and why it may not run."""
        self.tool_name = tool_name
        self.reason = reason
        super().__init__(f'{self._verb} {tool_name!r}: {reason}')


class ApprovalBlocked(ApprovalRefused):
    """Policy refuses the call; nobody was asked."""

    _verb = 'Blocked'


class ApprovalDenied(ApprovalRefused):
    """An approver or a mode denied the call, or nobody could be asked."""

    _verb = 'Denied'


Path = tuple[str | int, ...]
"""The keys from the top of a document down to one of its values."""

LONGEST_SHOWN = 60
"""Chosen: an error quotes so many characters of a key or value, which may be as long as the file."""


def dotted(path: Path) -> str | None:
    """A path as a person reads it, such as `tools.rm.approval`; `None` for the top."""
    return '.'.join(printable(str(part)) for part in path) or None


def printable(text: str, max_chars: int = LONGEST_SHOWN) -> str:
    """What an error quotes of a configuration: shortened, and safe to print on a terminal."""
    shown = text if len(text) <= max_chars else f'{text[: max_chars - 3]}...'
    return shown if shown.isprintable() else repr(shown)[1:-1]


class ExecutionNotRepeated(ApprovalError):
    """A ledger has this call already, and has no result of it: it failed, or it is unknown whether it happened."""

    def __init__(self, tool_name: str, state: str, problem: str) -> None:
        """Say what became of it.

        Args:
            tool_name: The tool.
            state: `failed` or `unknown`.
            problem: What the ledger has kept.
        """
        self.tool_name = tool_name
        self.state = state
        self.problem = problem
        super().__init__(f'{tool_name!r} was not run again: {problem}')

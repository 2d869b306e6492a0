"""The exceptions of this package.

```
ApprovalError
├── ApprovalConfigError (ValueError)     the configuration is invalid
├── NotCanonicalError (ValueError)       a value has no canonical JSON form, so no approval can be bound to it
├── StoreError                           remembered approvals cannot be trusted or stored
├── AuditError                           the audit log cannot be trusted or written
├── MissingExtraError (ImportError)      an optional library is not installed
├── AliasError (ImportError)             `compat`: the old module name is already used by another module
├── TrustError                           `settings`: the list of trusted files cannot be read or written
├── FileToolError                        `tools.file_sandbox`: a file cannot be used; the model reads the message
├── ExecutionNotRepeated                 the ledger has the call, but no result that can be returned
├── InboxError                           `inbox`: an answer is not accepted, or a request cannot be stored
├── ChatError                            `inbox`: a call to a chat's API failed
│   ├── ChatUnavailable                  the chat cannot be reached; repeat it later
│   └── ChatRefused                      the chat rejects this message for good
├── AssistantError                       the command `run` cannot start
├── OSSandboxError                       `os_sandbox`: a profile cannot be enforced
│   └── OSSandboxUnavailable             this system cannot confine a command
└── ApprovalRefused (PermissionError)    a tool was called directly, and the call may not run
    ├── ApprovalBlocked                  blocked by policy, without asking
    └── ApprovalDenied                   denied by an approver or a mode, or because no approver could be asked
```

A denial is usually a decision, not an exception. Only `execute_tool` and the compatibility layer, which run a tool for
their caller, raise an exception for a denial.
"""

from __future__ import annotations

import os
from traceback import walk_tb
from typing import Any


class ApprovalError(Exception):
    """Base class of all exceptions of this package. Copying and pickling preserve attributes and message."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support `pickle` and `copy`."""
        # By default, the constructor is called with the message, but our constructors take other arguments.
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(kind: type[ApprovalError], args: tuple[object, ...], facts: dict[str, Any]) -> ApprovalError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


def without_text(error: BaseException) -> str:
    """Return the type of an exception, and the last file and line outside of Python's own library, for a log.

    The text of the exception is left out, because it may quote arguments.
    """
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    # An error inside the standard library says little; what called it says more.
    own = [place for place in places if 'site-packages' in place[0] or not place[0].startswith((_LIBRARY, '<frozen'))]
    at = ''.join(f' at {printable(file, _LONGEST_PLACE)}:{line}' for file, line in (own or places)[-1:])
    return f'{type(error).__name__}{at}'


def check_type(name: str, given: object, wanted: str, *kinds: type) -> None:
    """Reject an argument of a wrong type where it is given, not when it is first used.

    Args:
        name: Name of the argument.
        given: Value of the argument. `None` is accepted, and stands for an argument that was left out.
        wanted: Text that says which value is needed, and how to get one.
        *kinds: Types, of which the value must have one.

    Raises:
        TypeError: The value has none of the types. The message quotes no value.
    """
    if given is not None and not isinstance(given, kinds):
        raise _wrong(name, given, wanted)


def check_methods(name: str, given: object, wanted: str, *methods: str) -> None:
    """Reject an argument that lacks a method; see `check_type`.

    Raises:
        TypeError: The value lacks a method, or is a class. The message quotes no value.
    """
    has_all = all(callable(getattr(given, method, None)) for method in methods)
    if given is not None and (isinstance(given, type) or not has_all):
        raise _wrong(name, given, wanted)


def _wrong(name: str, given: object, wanted: str) -> TypeError:
    kind = f'the class {given.__name__}' if isinstance(given, type) else f'a value of type {type(given).__name__}'
    return TypeError(f'`{name}` must be {wanted}, not {kind}')


class ApprovalConfigError(ApprovalError, ValueError):
    """The configuration is invalid."""

    def __init__(
        self, problem: str, *, key: str | None = None, source: str | None = None, line: int | None = None
    ) -> None:
        """Describe the mistake and its position.

        Args:
            problem: The mistake, and how to correct it.
            key: Path of the wrong key, such as `tools.rm.approval`.
            source: File with the mistake.
            line: Line of the mistake in the file, counted from 1.
        """
        self.problem = problem
        self.key = key
        self.source = source
        self.line = line
        place = ':'.join(str(part) for part in (source, line) if part is not None)
        super().__init__(': '.join(part for part in (place, key, problem) if part))


class NotCanonicalError(ApprovalError, ValueError):
    """A value has no canonical JSON form, so it cannot be compared with others."""

    def __init__(self, problem: str) -> None:
        """Describe the problem without the value, which may be a secret."""
        self.problem = problem
        super().__init__(f'no canonical JSON: {problem}')


class StoreError(ApprovalError):
    """Remembered approvals cannot be trusted or stored. The store's approvals are not used."""

    def __init__(self, path: str, problem: str) -> None:
        """Create the message, which names the file and the problem. The path is empty if there is no file."""
        self.path = path
        self.problem = problem
        super().__init__(f'remembered approvals in {path!r}: {problem}' if path else problem)


class UsedUp(ApprovalError):
    """The remembered approval of a call has ended or was revoked. The call has not begun, and must not run."""

    def __init__(self, tool_name: str) -> None:
        """Create the reason for the model."""
        self.reason = (
            f'The remembered approval of this call of {tool_name!r} is used up, has ended or was revoked, so the call '
            'was not run. Call the tool again to ask anew.'
        )
        super().__init__(self.reason)


class AuditError(ApprovalError):
    """The audit log cannot be trusted or written. A call whose decision cannot be logged does not run."""

    def __init__(self, path: str, problem: str) -> None:
        """Create the message, which names the file and the problem."""
        self.path = path
        self.problem = problem
        super().__init__(f'audit log {path!r}: {problem}')


_WITH_HANDLER = frozenset({'pydantic-ai', 'cli', 'durable', 'all'})
"""Extras that need the package `pydantic-ai-deferred-handler`, which is not on any package index."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra from a checkout of the project."""
    handler = './pydantic_ai_slim ' if extra in _WITH_HANDLER else ''
    return f"pip install {handler}'./tool_approval[{extra}]'"


class MissingExtraError(ApprovalError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, *, extra: str) -> None:
        """Create the message, which names the library and the extra that installs the library."""
        self.library = library
        self.extra = extra
        super().__init__(f'{library!r} is not installed; in a checkout of tool-approval, run: {install_command(extra)}')


class ApprovalRefused(ApprovalError, PermissionError):
    """A tool call was refused. No part of the call has run."""

    _verb = 'Refused'

    def __init__(self, tool_name: str, reason: str) -> None:
        """Create the message, which names the tool and the reason."""
        self.tool_name = tool_name
        self.reason = reason
        super().__init__(f'{self._verb} {tool_name!r}: {reason}')


class ApprovalBlocked(ApprovalRefused):
    """Policy blocks the call. No approver was asked."""

    _verb = 'Blocked'


class ApprovalDenied(ApprovalRefused):
    """An approver or a mode denied the call, or no approver could be asked."""

    _verb = 'Denied'


Path = tuple[str | int, ...]
"""Keys that lead from the top of a document to one of its values."""

LONGEST_SHOWN = 60
"""Maximum number of characters that an error quotes from a key or a value."""


_LIBRARY = os.path.dirname(os.__file__) + os.sep
_LONGEST_PLACE = 4096
"""Maximum number of characters of a file's path in the log: the longest path that Linux allows."""


def dotted(path: Path) -> str | None:
    """Format a key path for people, for example as `tools.rm.approval`. Return `None` for the top of the document."""
    return '.'.join(printable(str(part)) for part in path) or None


def printable(text: str, max_chars: int = LONGEST_SHOWN) -> str:
    """Shorten a text from a configuration, and make the text safe to print on a terminal."""
    shown = text if len(text) <= max_chars else f'{text[: max_chars - 3]}...'
    return shown if shown.isprintable() else repr(shown)[1:-1]


class ExecutionNotRepeated(ApprovalError):
    """The ledger has recorded this call without a result: the call failed, or it is unknown whether the call ran."""

    def __init__(self, tool_name: str, state: str, problem: str) -> None:
        """Describe what the ledger records about the call.

        Args:
            tool_name: Name of the tool.
            state: `failed` or `unknown`.
            problem: Description of the problem, from the ledger.
        """
        self.tool_name = tool_name
        self.state = state
        self.problem = problem
        super().__init__(f'{tool_name!r} was not run again: {problem}')

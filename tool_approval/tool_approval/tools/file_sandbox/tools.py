"""Provide the file operations as tools. A tool checks each call and then uses exactly the files that were checked."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_type_hints

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError, check_type, printable
from tool_approval.core.presentation import SHOWN_FILES, ApprovalPresentation
from tool_approval.core.request import ApprovalContext, ApprovalRequest, RememberOption
from tool_approval.core.tool_checks import judged

from .content import state_of_bytes
from .rules import USES, PathTarget, has_more_names
from .sandbox import FileAccess, FileSandbox

if TYPE_CHECKING:
    from tool_approval.core.protocols import Presenter

    from .commit import FileToolError

_VERBS = {
    'read_file': 'Read',
    'list_files': 'List',
    'write_file': 'Write',
    'edit_file': 'Edit',
    'make_directory': 'Create the directory',
    'delete': 'Delete',
    'move': 'Move',
    'copy': 'Copy',
}

_EDITS = {'edit_file': 'edits of', 'write_file': 'writes to'}
"""Text before the path in the description of a remembered approval."""

_ANY = '*'
"""Used in place of a state if the file may change before the call runs."""


@dataclass(kw_only=True, eq=False)
class _Judged:
    """Result of `check_approval` for one call. The call can run only once."""

    owner: FileTools
    call: str
    files: Mapping[str, str]
    needed_approval: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Record that the call now runs. Return false if an earlier run was recorded."""
        return self._lock.acquire(blocking=False)


class FileTools:
    """The eight file operations as tools with descriptions for the model. A sandbox checks each call. Several runs may
    share one object.
    """

    def __init__(self, sandbox: FileSandbox, *, prefix: str = '') -> None:
        """Create the tools of a sandbox.

        Args:
            sandbox: The rules.
            prefix: Prefix of the tool names that the model sees.

        Raises:
            TypeError: `sandbox` is not a `FileSandbox`, but its configuration, for example.
        """
        check_type('sandbox', sandbox, 'a `FileSandbox`', FileSandbox)
        self.sandbox = sandbox
        self.prefix = prefix

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools."""
        return tuple(f'{self.prefix}{operation}' for operation in USES)

    @property
    def presenters(self) -> dict[str, Presenter]:
        """Presenters by tool name, for `ApprovalController(presenters=...)`."""
        return dict.fromkeys(self.names, self.present)

    def __getitem__(self, name: str) -> FileTool:
        """Return one of the tools, for `execute_tool`.

        Raises:
            KeyError: The name is not one of `names`.
        """
        if name not in self.names:
            raise KeyError(name)
        return FileTool(self, name)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Check whether a call requires approval. The method reads the files that the call would replace, up to 16 MiB
        each. Only the path arguments are required.

        Returns:
            The request for approval, whose `bound_to['files']` gives the state of each path. `None` if the call may run
            without approval. An edit that would change nothing also gives `None`, because `run` refuses such an edit.

        Raises:
            PermissionError: The rules forbid the call. The message is for the model.
        """
        operation = self._operation(ctx.tool_name)
        with self._open(operation, ctx.args) as access:
            is_asked = bool(access.needs) and self._idle(access, ctx.args) is None
            files = _files(access) if is_asked else {target.key: _ANY for target in access.targets}
            request = _request(ctx, access, self._bound(access, ctx.args, files)) if is_asked else None
        judged.set(
            _Judged(owner=self, call=_call(operation, ctx.args), files=files, needed_approval=request is not None)
        )
        return request

    def forget(self) -> None:
        """Discard the result of the last check. Until the next check, `run` refuses calls that need approval."""
        judged.set(None)

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Perform a call. A call that needs approval must first be checked with `check_approval`, in the same task.

        Returns:
            The text for the model.

        Raises:
            PermissionError: The rules forbid the call, a path no longer resolves to the file that was checked, or the
                call needs approval and was not checked. No file was changed.
            FileToolError: The call is permitted but failed. The message is for the model.
        """
        # Imported here, as in `_bound`, `_idle` and `present`, because most programs that judge a call do not run it.
        from .operations import perform

        operation = self._operation(name)
        if (wrong := _wrong_arguments(operation, arguments)) is not None:
            raise PermissionError(f'{operation} cannot be called like this: {wrong}.')
        found = judged.get()
        with self._turn(operation), self._open(operation, arguments) as access:
            if (
                not isinstance(found, _Judged)
                or found.owner is not self
                or found.call != _call(operation, arguments)
                or not found.take()
            ):
                if access.needs:
                    raise PermissionError(f'{" ".join(access.needs)} Approval was not requested, so nothing was done.')
                return perform(self.sandbox, access, arguments)
            # Attack: a link is created or redirected after the check (test_races.py).
            if {target.key for target in access.targets} != set(found.files):
                raise PermissionError('A path has changed since the call was judged, so the call was not run.')
            if access.needs and not found.needed_approval:
                if (idle := self._idle(access, arguments)) is not None:
                    raise idle
                raise PermissionError(f'{" ".join(access.needs)} No approval was needed when the call was judged.')
            expected = {key: state for key, state in found.files.items() if state != _ANY}
            return perform(self.sandbox, access, arguments, expected)

    @contextmanager
    def _turn(self, operation: str) -> Generator[None]:
        turns = self.sandbox.turns
        if not turns.begin():
            raise PermissionError('A command runs outside of the sandbox now. Call again when it has ended.')
        try:
            yield
        finally:
            turns.end(could_change=operation not in ('read_file', 'list_files'))

    def read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: The file, relative to the working directory.
        """
        return self.run(f'{self.prefix}read_file', {'path': path})

    def list_files(self, path: str) -> str:
        """List the names in a directory.

        Args:
            path: The directory, relative to the working directory.
        """
        return self.run(f'{self.prefix}list_files', {'path': path})

    def write_file(self, path: str, content: str) -> str:
        """Write a text file, creating or replacing it. Missing directories are created.

        Args:
            path: The file, relative to the working directory.
            content: The whole new content.
        """
        return self.run(f'{self.prefix}write_file', {'path': path, 'content': content})

    def edit_file(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Replace text in a file.

        Args:
            path: The file, relative to the working directory.
            old_text: The text to replace. The text must match exactly, and occur once unless `replace_all` is set.
            new_text: The replacement.
            replace_all: Replace every occurrence.
        """
        arguments = {'path': path, 'old_text': old_text, 'new_text': new_text, 'replace_all': replace_all}
        return self.run(f'{self.prefix}edit_file', arguments)

    def make_directory(self, path: str) -> str:
        """Create a directory, and missing directories above it.

        Args:
            path: The directory, relative to the working directory.
        """
        return self.run(f'{self.prefix}make_directory', {'path': path})

    def move(self, path: str, dest: str) -> str:
        """Move or rename a file or a directory. A file at the destination is replaced.

        Args:
            path: The file or directory to move, relative to the working directory.
            dest: The new path, including the name.
        """
        return self.run(f'{self.prefix}move', {'path': path, 'dest': dest})

    def copy(self, path: str, dest: str) -> str:
        """Copy a file. A file at the destination is replaced.

        Args:
            path: The file, relative to the working directory.
            dest: The path of the copy, including the name.
        """
        return self.run(f'{self.prefix}copy', {'path': path, 'dest': dest})

    def delete(self, path: str) -> str:
        """Delete a file, a directory with everything in it, or a link but not its target.

        Args:
            path: The file, directory or link, relative to the working directory.
        """
        return self.run(f'{self.prefix}delete', {'path': path})

    def present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """Return the presentation of a call for the approver: a diff, the content of a new file, or a summary.

        Raises:
            FileToolError: The files have changed since the request was created.
            PermissionError: The rules now forbid the call.
        """
        from .commit import CHANGED, FileToolError
        from .showing import present

        operation = self._operation(request.tool_name)
        if (wrong := _wrong_arguments(operation, request.args)) is not None:
            raise PermissionError(f'{operation} cannot be called like this: {wrong}.')
        with self._open(operation, request.args) as access:
            presentation = present(self.sandbox, access, request.args)
            # Checked last, so that what was shown is what the approval is bound to.
            if request.bound_to.get(SHOWN_FILES) != self._bound(access, request.args, _files(access)):
                raise FileToolError(access.targets[0].shown, CHANGED)
            return presentation

    def _bound(self, access: FileAccess, arguments: Mapping[str, Any], files: Mapping[str, str]) -> Mapping[str, str]:
        """Return the states to which an approval is bound: those of the files before our own edits of other lines."""
        if access.operation != 'edit_file' or _wrong_arguments('edit_file', arguments) is not None:
            return files
        from .commit import FileToolError
        from .operations import read_text

        [target] = access.targets
        try:
            content, text = read_text(target, self.sandbox.max_bytes)
        except (FileToolError, OSError):
            return files
        # The content may have changed since `files` was read.
        if text is None or files[target.key] != state_of_bytes(content):
            return files
        return {target.key: self.sandbox.own_edits.origin(target.key, files[target.key], text, arguments)}

    def _idle(self, access: FileAccess, arguments: Mapping[str, Any]) -> FileToolError | None:
        """If the call is an edit that would change nothing, return the error. For other calls, or if the
        file cannot be read without approval, return `None`.
        """
        if access.operation != 'edit_file' or _wrong_arguments('edit_file', arguments) is not None:
            return None
        from .commit import FileToolError
        from .operations import SAME, unchanged

        [target] = access.targets
        if arguments['old_text'] == arguments['new_text']:
            return FileToolError(target.shown, f'nothing was changed: {SAME}')
        # Attack: with edits that need no approval, guess a file's content word by word (test_tools.py).
        return unchanged(target, arguments, self.sandbox.max_bytes) if target.is_free_to_read else None

    def _operation(self, name: str) -> str:
        operation = name.removeprefix(self.prefix)
        if not name.startswith(self.prefix) or operation not in _PARAMETERS:
            raise PermissionError(f'There is no file tool {printable(name)!r}.')
        return operation

    @contextmanager
    def _open(self, operation: str, arguments: Mapping[str, Any]) -> Generator[FileAccess]:
        path, dest = arguments.get('path'), arguments.get('dest')
        if not isinstance(path, str) or not isinstance(dest, str | None):
            raise PermissionError(f'{operation} takes paths as strings.')
        with self.sandbox.open(operation, path, dest) as access:
            yield access


_PARAMETERS: dict[str, dict[str, type]] = {
    operation: {name: kind for name, kind in get_type_hints(getattr(FileTools, operation)).items() if name != 'return'}
    for operation in USES
}
"""Parameter names and types by operation."""

_DEFAULTS: dict[str, Any] = {'replace_all': False}


@dataclass(frozen=True)
class FileTool:
    """One file operation as a tool, for `execute_tool(files['copy'], 'copy', {...}, controller)`."""

    files: FileTools
    """Object that contains this tool."""
    name: str
    """Name of the tool, as the model calls it."""

    def __call__(self, **arguments: Any) -> str:
        """Run the tool; see `FileTools.run`."""
        return self.files.run(self.name, arguments)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Check a call of this tool, even if `ctx.tool_name` names another tool; see `FileTools.check_approval`."""
        return self.files.check_approval(ctx.model_copy(update={'tool_name': self.name}))


def _call(operation: str, arguments: Mapping[str, Any]) -> str:
    given = {name: arguments.get(name, _DEFAULTS.get(name)) for name in _PARAMETERS[operation]}
    try:
        return canonical_json([operation, given])
    except NotCanonicalError as error:
        raise PermissionError(f'The arguments of {operation} are invalid: {error.problem}.') from None


def _wrong_arguments(operation: str, arguments: Mapping[str, Any]) -> str | None:
    parameters = _PARAMETERS[operation]
    unknown = [printable(str(name)) for name in arguments if name not in parameters]
    if unknown:
        return f'the operation has no parameter {unknown[0]!r}'
    for name, kind in parameters.items():
        if not isinstance(arguments.get(name, _DEFAULTS.get(name)), kind):
            return f'{name!r} must be {"true or false" if kind is bool else "a string"}'
    return None


def _files(access: FileAccess) -> dict[str, str]:
    """Return the state that each path must have when the approved call runs. Each key has the form `root:path`."""
    is_read_only = access.operation in ('read_file', 'list_files')
    try:
        return {
            target.key: _ANY if is_read_only or target.use == 'make' else target.state() for target in access.targets
        }
    except OSError:
        raise PermissionError(f'{access.targets[0].shown} cannot be read, so the approver could not see it.') from None


def _request(ctx: ApprovalContext, access: FileAccess, files: Mapping[str, str]) -> ApprovalRequest:
    shown = ' to '.join(target.shown for target in access.targets)
    return ApprovalRequest(
        tool_name=ctx.tool_name,
        args=ctx.args,
        description=f'{_VERBS[access.operation]} {shown}{_ending(access.targets[0])}',
        payload=_payload(access),
        reason=' '.join(access.needs),
        remember_options=_options(ctx.tool_name, access),
        bound_to={SHOWN_FILES: dict(files)},
    )


def _ending(target: PathTarget) -> str:
    return '/ and everything in it' if target.use in ('take', 'delete') and target.place.is_folder else ''


def _payload(access: FileAccess) -> dict[str, Any]:
    first, *rest = access.targets
    payload: dict[str, Any] = {'root': first.root.name, 'path': first.path}
    for dest in rest:
        payload |= {'dest_root': dest.root.name, 'dest_path': dest.path}
    # An approval remembered for a file must not cover a directory or link that takes its name.
    if kind := _special(first):
        payload['kind'] = kind
    return payload


def _special(target: PathTarget) -> str | None:
    if target.use in ('take', 'delete') and target.place.is_folder:
        return 'directory'
    if target.is_link:
        return 'link'
    if target.holds_secret:
        return 'secret'
    return 'hard link' if has_more_names(target) else None


def _options(tool_name: str, access: FileAccess) -> tuple[RememberOption, ...]:
    if any(_special(target) for target in access.targets):
        return ()
    folders = [(target.root.name, target.path.rpartition('/')[0]) for target in access.targets]
    here = ' to '.join(printable(f'{root}:{folder}/', 200) for root, folder in folders)
    anywhere = ' to '.join(root for root, _ in folders)
    edits: tuple[RememberOption, ...] = ()
    if access.operation in _EDITS:
        # The label describes the approval that the payload defines.
        first, *_ = access.targets
        brief = '' if ' ' in first.title else f'{_EDITS[access.operation]} {first.title}'
        label = f'{tool_name} for {first.shown}, with any content'
        edits = (RememberOption(kind='file', label=label, payload=_payload(access), brief=brief),)
    return (
        *edits,
        RememberOption(
            kind='directory',
            label=f'{tool_name} for everything directly in {here}',
            payload={'directories': [list(each) for each in folders]},
        ),
        RememberOption(
            kind='root',
            label=f'{tool_name} for everything in {anywhere}',
            payload={'roots': [root for root, _ in folders]},
        ),
    )

"""The file operations as tools: each says itself whether a call needs approval, and does just what was judged."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_type_hints

from tool_approval.core.canonical import canonical_json
from tool_approval.core.errors import NotCanonicalError, printable
from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.request import ApprovalContext, ApprovalRequest, RememberOption
from tool_approval.core.tool_checks import judged

from .commit import CHANGED, FileToolError
from .operations import SAME, perform, unchanged
from .rules import USES, PathTarget, has_more_names
from .sandbox import FileAccess, FileSandbox
from .showing import present

if TYPE_CHECKING:
    from tool_approval.core.protocols import Presenter

_VERBS = {
    'read_file': 'Read',
    'list_files': 'List',
    'write_file': 'Write',
    'edit_file': 'Edit',
    'make_directory': 'Make the directory',
    'delete': 'Delete',
    'move': 'Move',
    'copy': 'Copy',
}

_EDITS = {'edit_file': 'edits of', 'write_file': 'writes to'}
"""What an approval of the same call again covers, before the path."""

_ANY = '*'
"""In place of the state of what is only read: it may change."""


@dataclass(kw_only=True, eq=False)
class _Judged:
    """One call as `check_approval` found it. It lets one call run."""

    owner: FileTools
    call: str
    files: Mapping[str, str]
    needed_approval: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Whether this is the first to ask."""
        return self._lock.acquire(blocking=False)


class FileTools:
    """The eight operations under a sandbox, each a method that is described for a model. Safe to share between runs."""

    def __init__(self, sandbox: FileSandbox, *, prefix: str = '') -> None:
        """Offer the operations of a sandbox.

        Args:
            sandbox: The rules.
            prefix: Stands before the name of each tool, as the model knows it.
        """
        self.sandbox = sandbox
        self.prefix = prefix

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(f'{self.prefix}{operation}' for operation in USES)

    @property
    def presenters(self) -> dict[str, Presenter]:
        """For `ApprovalController(presenters=...)`: what is shown of each tool's calls."""
        return dict.fromkeys(self.names, self.present)

    def __getitem__(self, name: str) -> FileTool:
        """One of the tools, for `execute_tool`.

        Raises:
            KeyError: There is none of that name.
        """
        if name not in self.names:
            raise KeyError(name)
        return FileTool(self, name)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """Judge a call.

        It looks at files, and reads what would be replaced, up to 16 MiB; what a call has beside its paths may be left
        out of the arguments.

        Returns:
            `None` if the call may run, or would change nothing, which `run` says; else what to ask. `bound_to` has
            under `files` what stands at each path.

        Raises:
            PermissionError: The rules forbid it; the text is for a model.
        """
        operation = self._operation(ctx.tool_name)
        with self._open(operation, ctx.args) as access:
            is_asked = bool(access.needs) and self._idle(access, ctx.args) is None
            files = _files(access) if is_asked else {target.key: _ANY for target in access.targets}
            request = _request(ctx, access, files) if is_asked else None
        judged.set(
            _Judged(owner=self, call=_call(operation, ctx.args), files=files, needed_approval=request is not None)
        )
        return request

    def forget(self) -> None:
        """Let the call that was judged last not run without being judged again."""
        judged.set(None)

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Do what `check_approval` has judged, in the same task.

        Returns:
            What the model is told.

        Raises:
            PermissionError: The rules forbid it, a path leads elsewhere than when it was judged, or it needs approval
                and was not judged at all. Nothing has happened.
            FileToolError: It is allowed, and could not be done. The text is for a model.
        """
        operation = self._operation(name)
        if (wrong := _wrong_arguments(operation, arguments)) is not None:
            raise PermissionError(f'{operation} cannot be called like this: {wrong}.')
        found = judged.get()
        with self._open(operation, arguments) as access:
            if (
                not isinstance(found, _Judged)
                or found.owner is not self
                or found.call != _call(operation, arguments)
                or not found.take()
            ):
                if access.needs:
                    raise PermissionError(f'{" ".join(access.needs)} Nobody was asked, so the call was not run.')
                return perform(self.sandbox, access, arguments)
            # Attack: between the check and now, a link is put in, or bent (test_races.py).
            if {target.key for target in access.targets} != set(found.files):
                raise PermissionError('A path leads elsewhere than when the call was judged, so it was not run.')
            if access.needs and not found.needed_approval:
                if (idle := self._idle(access, arguments)) is not None:
                    raise idle
                raise PermissionError(f'{" ".join(access.needs)} It did not when the call was judged.')
            expected = {key: state for key, state in found.files.items() if state != _ANY}
            return perform(self.sandbox, access, arguments, expected)

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
        """Write a text file, new or in place of an existing one. Directories that are missing are made.

        Args:
            path: The file, relative to the working directory.
            content: Its whole new content.
        """
        return self.run(f'{self.prefix}write_file', {'path': path, 'content': content})

    def edit_file(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another.

        Args:
            path: The file, relative to the working directory.
            old_text: What is replaced. It has to match exactly, and to occur once.
            new_text: What takes its place.
            replace_all: Replace it everywhere, if it occurs more than once.
        """
        arguments = {'path': path, 'old_text': old_text, 'new_text': new_text, 'replace_all': replace_all}
        return self.run(f'{self.prefix}edit_file', arguments)

    def make_directory(self, path: str) -> str:
        """Make a directory, and those above it that are missing.

        Args:
            path: The directory, relative to the working directory.
        """
        return self.run(f'{self.prefix}make_directory', {'path': path})

    def move(self, path: str, dest: str) -> str:
        """Move or rename a file or a directory. A file at the destination is replaced.

        Args:
            path: What to move, relative to the working directory.
            dest: Its new path, name included.
        """
        return self.run(f'{self.prefix}move', {'path': path, 'dest': dest})

    def copy(self, path: str, dest: str) -> str:
        """Copy a file. A file at the destination is replaced.

        Args:
            path: The file, relative to the working directory.
            dest: The path of the copy, name included.
        """
        return self.run(f'{self.prefix}copy', {'path': path, 'dest': dest})

    def delete(self, path: str) -> str:
        """Delete a file, or a directory with everything in it. Of a link, only the link goes.

        Args:
            path: What to delete, relative to the working directory.
        """
        return self.run(f'{self.prefix}delete', {'path': path})

    def present(self, request: ApprovalRequest) -> ApprovalPresentation:
        """What a person is shown of a call: a diff, a new file's content, a summary.

        Raises:
            FileToolError: The files are no longer what the request is bound to.
            PermissionError: The rules forbid the call by now.
        """
        operation = self._operation(request.tool_name)
        if (wrong := _wrong_arguments(operation, request.args)) is not None:
            raise PermissionError(f'{operation} cannot be called like this: {wrong}.')
        with self._open(operation, request.args) as access:
            presentation = present(self.sandbox, access, request.args)
            # Afterwards, so that what was read in between is what the approval will be bound to.
            if request.bound_to.get('files') != _files(access):
                raise FileToolError(access.targets[0].shown, CHANGED)
            return presentation

    def _idle(self, access: FileAccess, arguments: Mapping[str, Any]) -> FileToolError | None:
        """Why an edit would change nothing; `None` if it would, or if that tells what may only be read with consent."""
        if access.operation != 'edit_file' or _wrong_arguments('edit_file', arguments) is not None:
            return None
        [target] = access.targets
        if arguments['old_text'] == arguments['new_text']:
            return FileToolError(target.shown, f'nothing was changed: {SAME}')
        # Attack: what a file says is guessed word by word, by edits that nobody is asked about (test_tools.py).
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
            raise PermissionError(f'{operation} takes paths as text.')
        with self.sandbox.open(operation, path, dest) as access:
            yield access


_PARAMETERS: dict[str, dict[str, type]] = {
    operation: {name: kind for name, kind in get_type_hints(getattr(FileTools, operation)).items() if name != 'return'}
    for operation in USES
}
"""By operation: names and types of what it takes."""

_DEFAULTS: dict[str, Any] = {'replace_all': False}


@dataclass(frozen=True)
class FileTool:
    """One operation, for code that runs tools itself: `execute_tool(files['copy'], 'copy', {...}, controller)`."""

    files: FileTools
    """Whose it is."""
    name: str
    """The name the model calls it by."""

    def __call__(self, **arguments: Any) -> str:
        """See `FileTools.run`."""
        return self.files.run(self.name, arguments)

    def check_approval(self, ctx: ApprovalContext) -> ApprovalRequest | None:
        """See `FileTools.check_approval`. It judges calls of this tool alone, whatever `ctx` calls it."""
        return self.files.check_approval(ctx.model_copy(update={'tool_name': self.name}))


def _call(operation: str, arguments: Mapping[str, Any]) -> str:
    given = {name: arguments.get(name, _DEFAULTS.get(name)) for name in _PARAMETERS[operation]}
    try:
        return canonical_json([operation, given])
    except NotCanonicalError as error:
        raise PermissionError(f'The arguments of {operation} cannot be judged: {error.problem}.') from None


def _wrong_arguments(operation: str, arguments: Mapping[str, Any]) -> str | None:
    parameters = _PARAMETERS[operation]
    unknown = [printable(str(name)) for name in arguments if name not in parameters]
    if unknown:
        return f'it has no parameter {unknown[0]!r}'
    for name, kind in parameters.items():
        if not isinstance(arguments.get(name, _DEFAULTS.get(name)), kind):
            return f'{name!r} has to be {"true or false" if kind is bool else "a text"}'
    return None


def _files(access: FileAccess) -> dict[str, str]:
    """By `root:path`, what an approval is about."""
    is_read_only = access.operation in ('read_file', 'list_files')
    try:
        return {
            target.key: _ANY if is_read_only or target.use == 'make' else target.state() for target in access.targets
        }
    except OSError:
        raise PermissionError(f'{access.targets[0].shown} cannot be read, so nobody can be shown what it is.') from None


def _request(ctx: ApprovalContext, access: FileAccess, files: Mapping[str, str]) -> ApprovalRequest:
    shown = ' to '.join(target.shown for target in access.targets)
    return ApprovalRequest(
        tool_name=ctx.tool_name,
        args=ctx.args,
        description=f'{_VERBS[access.operation]} {shown}{_ending(access.targets[0])}',
        payload=_payload(access),
        reason=' '.join(access.needs),
        remember_options=_options(ctx.tool_name, access),
        bound_to={'files': dict(files)},
    )


def _ending(target: PathTarget) -> str:
    return '/ and all it contains' if target.use in ('take', 'delete') and target.place.is_folder else ''


def _payload(access: FileAccess) -> dict[str, Any]:
    first, *rest = access.targets
    payload: dict[str, Any] = {'root': first.root.name, 'path': first.path}
    for dest in rest:
        payload |= {'dest_root': dest.root.name, 'dest_path': dest.path}
    # What was remembered for a file does not hold for a directory that takes its name, nor for a link to it.
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
        # What the payload itself covers, in words.
        first, *_ = access.targets
        brief = '' if ' ' in first.title else f'{_EDITS[access.operation]} {first.title}'
        label = f'{tool_name} for {first.shown}, whatever is written'
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

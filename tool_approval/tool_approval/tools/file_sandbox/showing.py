"""Show the approver what a file operation would do. The functions of this module read files, so they
run only if a call requires approval.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tool_approval.core.errors import printable
from tool_approval.core.presentation import ApprovalPresentation, truncate_for_display

from .commit import FileToolError
from .content import tree
from .operations import edited, read_text
from .rules import PathTarget
from .sandbox import FileAccess, FileSandbox

LONGEST_DIFF = 200_000
"""Maximum total length of the old and new text, in characters. Longer texts get no diff, because a long diff takes
seconds to compute and approvers do not read it."""

MOST_LINES = 5_000
"""Maximum total number of lines of the old and new text. Longer texts get no diff."""

LISTED = 200
"""Maximum number of names to show if a directory is deleted."""

_VERBS = {'read_file': 'Reads', 'list_files': 'Lists the names in', 'make_directory': 'Creates the directory'}
_LANGUAGES = {
    '.c': 'c', '.cpp': 'cpp', '.css': 'css', '.go': 'go', '.h': 'c', '.html': 'html', '.ini': 'ini', '.java': 'java',
    '.js': 'javascript', '.json': 'json', '.md': 'markdown', '.py': 'python', '.rb': 'ruby', '.rs': 'rust',
    '.sh': 'bash', '.sql': 'sql', '.toml': 'toml', '.ts': 'typescript', '.xml': 'xml', '.yaml': 'yaml', '.yml': 'yaml',
}  # fmt: skip


def present(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any]) -> ApprovalPresentation:
    """Return the presentation of an operation for the approver: a diff, the new content or a summary.

    Raises:
        OSError: A file cannot be read.
    """
    shown = _shown(sandbox, access, arguments)
    metadata = dict(shown.metadata)
    if all(target.is_usual for target in access.targets):
        metadata['is_usual'] = True
    if access.operation == 'edit_file':
        metadata['defaults'] = {'replace_all': False}
    return shown.model_copy(update={'metadata': metadata})


def _shown(sandbox: FileSandbox, access: FileAccess, arguments: Mapping[str, Any]) -> ApprovalPresentation:
    target = access.targets[0]
    match access.operation:
        case 'write_file':
            return _change(sandbox, target, arguments['content'])
        case 'edit_file':
            return _edit(sandbox, target, arguments)
        case 'delete':
            return _deletion(sandbox, target)
        case 'move' | 'copy':
            return _transfer(sandbox, access)
        case _:
            return _text(target, f'{_VERBS[access.operation]} {target.shown}')


def _change(sandbox: FileSandbox, target: PathTarget, new: str) -> ApprovalPresentation:
    if target.place.is_missing:
        return ApprovalPresentation.of('file_content', new, language=_language(target), path=target.title, is_new=True)
    old = _old_text(sandbox, target)
    if old is None:
        return _text(target, f'Replaces {_described(target)} with {_size(new)}:\n{truncate_for_display(new)}', full=new)
    return _diff(target, old, new)


def _edit(sandbox: FileSandbox, target: PathTarget, arguments: Mapping[str, Any]) -> ApprovalPresentation:
    old = None if target.place.is_missing else _old_text(sandbox, target)
    if old is None:
        return _text(target, f'The edit would change nothing: {_described(target)} is not text that can be edited.')
    try:
        return _diff(target, old, edited(old, arguments, sandbox.max_bytes))
    except ValueError as error:
        return _text(target, f'The edit would change nothing in {target.shown}: {error}.')


def _deletion(sandbox: FileSandbox, target: PathTarget) -> ApprovalPresentation:
    if target.place.is_folder:
        names = [printable(path, 300) for path, _ in tree(target.place.parent, target.place.name)]
        shown = '\n'.join(names[:LISTED] + ([f'... [{len(names) - LISTED} more]'] if len(names) > LISTED else []))
        heading = f'Deletes the directory {target.shown}/ and everything in it ({len(names)} entries):'
        return ApprovalPresentation.of(
            'text', f'{heading}\n{shown}', max_lines=LISTED + 2, max_chars=40_000, path=target.title
        )
    old = None if target.is_link or target.place.is_missing else _old_text(sandbox, target)
    return _text(target, f'Deletes {_described(target)}') if old is None else _diff(target, old, '', is_deleted=True)


def _transfer(sandbox: FileSandbox, access: FileAccess) -> ApprovalPresentation:
    source, dest = access.targets
    verb = 'Moves' if access.operation == 'move' else 'Copies'
    heading = f'{verb} {_described(source)} to {dest.shown}'
    if dest.place.is_missing:
        return _text(source, heading)
    old, new = _old_text(sandbox, dest), None if source.place.is_missing else _old_text(sandbox, source)
    if old is None or new is None:
        return _text(source, f'{heading}, which replaces {_described(dest)}')
    return _diff(dest, old, new, heading=f'{heading}, which is replaced')


def _diff(
    target: PathTarget, old: str, new: str, *, heading: str | None = None, is_deleted: bool = False
) -> ApprovalPresentation:
    lines = old.count('\n') + new.count('\n')
    if len(old) + len(new) > LONGEST_DIFF or lines > MOST_LINES:
        what = 'Deletes' if is_deleted else 'Changes'
        after = '' if is_deleted else f'; new size: {_size(new)}. The new content begins:\n{truncate_for_display(new)}'
        summary = f'{what} {target.shown}, which is too long for a diff. Old size: {_size(old)}{after}'
        return _text(target, '\n'.join(filter(None, (heading, summary))), full=new, is_summary=True)
    import difflib  # slow to import, and not needed to judge a call

    name = printable(target.title, 300)
    text = ''.join(
        line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n'
        for line in difflib.unified_diff(_lines(old), _lines(new), name, '/dev/null' if is_deleted else name)
    )
    if not text:  # an empty file is deleted, or the content stays the same
        unchanged = f'Deletes {_described(target)}' if is_deleted else f'{target.shown} stays as it is.'
        return _text(target, heading or unchanged)
    shown = '\n'.join(filter(None, (heading, text)))
    return ApprovalPresentation.of('diff', shown, language='diff', max_lines=200, path=target.title)


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which also splits at characters that end no line in a diff.
    lines = text.split('\n')
    return [f'{line}\n' for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _old_text(sandbox: FileSandbox, target: PathTarget) -> str | None:
    try:
        _, text = read_text(target, sandbox.max_bytes)
    except FileToolError:  # too long
        return None
    return text


def _described(target: PathTarget) -> str:
    if target.place.is_folder:
        return f'the directory {target.shown}/ and everything in it'
    if target.is_link:
        return f'the link {target.shown}, not its target'
    status = target.place.status
    return f'{target.shown} ({status.st_size} bytes)' if status is not None else f'{target.shown} (missing)'


def _size(text: str) -> str:
    return f'{len(text.encode(errors="replace"))} bytes in {len(_lines(text))} lines'


def _text(target: PathTarget, text: str, *, full: str | None = None, is_summary: bool = False) -> ApprovalPresentation:
    metadata: dict[str, Any] = {'path': target.title}
    if full is not None:
        metadata['full_content'] = full
    if is_summary:
        metadata['is_summary'] = True
    return ApprovalPresentation(type='text', content=text, metadata=metadata)


def _language(target: PathTarget) -> str | None:
    return _LANGUAGES.get(os.path.splitext(target.place.name)[1])

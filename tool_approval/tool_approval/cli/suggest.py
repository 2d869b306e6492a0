"""Implement `tool-approval suggest`: propose rules for calls that were always approved, and add them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tool_approval.audit.calls import logged_calls
from tool_approval.core.canonical import whole_characters
from tool_approval.settings.files import LoadedSettings, load_settings, trust_settings
from tool_approval.settings.model import parse_settings
from tool_approval.settings.trust import TrustStore
from tool_approval.storage.private_file import replace_private

from .judging import existing_directory
from .log_file import verified_entries
from .output import FAILED, Output, UsageError
from .proposals import Proposal, Proposer
from .replay import settings_in

_NOT_WRITTEN: Final = 'nothing was written'


def run(options: argparse.Namespace, output: Output) -> int:
    """Show the rules. With `--write`, ask whether to add them to the settings file, and trust the file again."""
    directory = existing_directory(options.cwd)
    loaded = settings_in(directory, options.settings)
    source = Path(str(loaded.source))
    if options.write:
        # Otherwise, the rest of the file would be trusted unseen.
        if not loaded.trusted:
            raise UsageError(f'{source} is not trusted ({loaded.why_untrusted}); run `tool-approval trust` first')
        if not output.is_terminal:
            raise UsageError(f'a person has to read the rules at a terminal before they are added; {_NOT_WRITTEN}')
    content = source.read_bytes()
    text = content.decode('utf-8-sig')
    if parse_settings(text, source=str(source)) != loaded.settings:
        raise UsageError(f'{source} has changed just now; try again')
    proposer = Proposer(loaded, text, directory)
    digests: set[str] = {loaded.digest}
    entries = _noting(verified_entries(options.log, options.key), whole_characters(str(source)), digests)
    proposals = proposer.proposals(list(logged_calls(entries)), frozenset(digests))
    if not proposals:
        output.line('no rule is proposed')
        return 0
    for each in proposals:
        _show(each, output)
    if not options.write:
        return 0
    if not output.confirm(f'Add {_number(proposals)} to {source}, and trust the file?', _NOT_WRITTEN):
        return FAILED
    return _write(source, content, proposer.text, loaded, output)


def _noting(
    entries: Iterator[Mapping[str, Any] | None], source: str, digests: set[str]
) -> Iterator[Mapping[str, Any] | None]:
    """Pass entries on, and collect the digests that the settings file had."""
    for entry in entries:
        if entry is not None and entry.get('event') == 'settings' and entry.get('source') == source:
            digests.add(str(entry.get('settings_digest')))
        yield entry


def _show(proposal: Proposal, output: Output) -> None:
    output.line(f'# {proposal.evidence_line()}')
    output.line(f'# newly runs unasked: {proposal.allows}')
    for line in proposal.lines:
        output.line(line)
    output.line('')


def _number(proposals: list[Proposal]) -> str:
    return 'this rule' if len(proposals) == 1 else f'these {len(proposals)} rules'


def _write(source: Path, content: bytes, text: str, loaded: LoadedSettings, output: Output) -> int:
    mode = os.stat(source).st_mode & 0o777
    if source.is_symlink() or source.read_bytes() != content:
        output.note(f'{source} has changed meanwhile; {_NOT_WRITTEN}')
        return FAILED
    replace_private(source, text.encode())
    os.chmod(source, mode)
    written = load_settings(source, directory=loaded.directory)
    if written.settings != parse_settings(text):
        output.note(f'{source} was written, but has changed since then; it is not trusted')
        return FAILED
    trust_settings(written, TrustStore())
    output.line(f'{source} is written. The file is trusted until the file or one of its presets changes.')
    return 0

"""What opens over the channel for one person: the whole of a request, and the form for a note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tool_approval.display import display
from tool_approval.inbox import InboxEntry

from .blocks import Block, button, section
from .mrkdwn import code, drawn, sections
from .target import Target

NOTE_FORM = 'deny_with_note'
"""What the form is called."""

NOTE_BLOCK, NOTE_INPUT = 'note', 'text'
"""Where in the form the note stands."""

PREVIOUS, NEXT = 'previous_page', 'next_page'
"""What the buttons of the full view are called."""

_PER_PAGE = 12
"""Chosen: sections. Slack takes 100 blocks in a view, but at most 250 kB, and an escaped character may take 12 bytes."""

LONGEST_NOTE = 3000
"""Source: Slack's reference of the plain text input. Characters."""

View = Mapping[str, Any]


def full_view(entry: InboxEntry, page: int) -> View:
    """A page of everything there is to see of a request; the last one, if there are not so many."""
    texts = sections(drawn(display(entry.request, whole=True).lines))
    pages = [texts[start : start + _PER_PAGE] for start in range(0, len(texts), _PER_PAGE)]
    page = min(page, len(pages) - 1)
    blocks = [section(f'*Call of* {code(entry.request.tool_name)}'), *map(section, pages[page])]
    turning = [
        button(name, label, Target(request_id=entry.id, digest=entry.digest, page=other))
        for name, label, other in ((PREVIOUS, 'Previous page', page - 1), (NEXT, 'Next page', page + 1))
        if 0 <= other < len(pages)
    ]
    if turning:
        blocks += [section(f'Page {page + 1:,} of {len(pages):,}'), {'type': 'actions', 'elements': turning}]
    return {'type': 'modal', 'title': _label('The whole request'), 'close': _label('Close'), 'blocks': blocks}


def note_form(entry: InboxEntry) -> View:
    """Asks for a note. What it is about comes back with it, signed by Slack as everything."""
    field: Block = {
        'type': 'input',
        'block_id': NOTE_BLOCK,
        'label': _label('What shall the model be told?'),
        'element': {
            'type': 'plain_text_input',
            'action_id': NOTE_INPUT,
            'multiline': True,
            'max_length': LONGEST_NOTE,
        },
    }
    return {
        'type': 'modal',
        'callback_id': NOTE_FORM,
        'private_metadata': str(Target(request_id=entry.id, digest=entry.digest)),
        'title': _label('Deny with a note'),
        'submit': _label('Deny'),
        'close': _label('Back'),
        'blocks': [section(f'*Call of* {code(entry.request.tool_name)}'), field],
    }


def _label(text: str) -> Block:
    return {'type': 'plain_text', 'text': text, 'emoji': False}

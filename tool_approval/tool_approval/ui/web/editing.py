"""Changing the arguments of a call: a text to edit, and the changed call to be approved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool_approval.display import display, name_of, warnings_of
from tool_approval.inbox import InboxEntry

from .cards import Place, hidden
from .content import content_of
from .html import Html, element
from .offers import editable, with_arguments

_HINT = 'A JSON object. Nothing is approved yet: the changed call is shown to you before you approve it.'


def edit_form(entry: InboxEntry, place: Place, *, text: str | None = None, problem: str | None = None) -> Html:
    """The arguments as a text.

    Args:
        entry: The request.
        place: Where the form stands.
        text: What was written so far; the arguments as they are if `None`.
        problem: What is wrong with that.
    """
    written = json.dumps(editable(entry.request), indent=2, ensure_ascii=True) if text is None else text
    return element(
        'form',
        None if problem is None else element('p', problem, class_='notice', role='alert', id='problem'),
        *hidden(place),
        element('label', f'Arguments of {name_of(entry.request.tool_name)}', for_='args'),
        element('p', _HINT, id='hint'),
        element(
            'textarea',
            # The first line end of a text area is dropped.
            f'\n{written}',
            id='args',
            name='args',
            rows=str(min(30, max(8, written.count('\n') + 2))),
            spellcheck='false',
            autocomplete='off',
            aria_describedby='hint' if problem is None else 'problem hint',
        ),
        element(
            'div',
            element('button', 'Show the changed call', type='submit', class_='approve'),
            _back(place),
            class_='buttons',
        ),
        method='post',
        action=f'{place.base}/requests/{entry.id}/edit',
        class_='card edit',
    )


def preview_of(entry: InboxEntry, edited: Mapping[str, Any], place: Place) -> Html:
    """The changed call, all of it, and what approves it."""
    asked = with_arguments(entry.request, edited)
    name = name_of(asked.tool_name)
    request = f'{place.base}/requests/{entry.id}'
    approve = element(
        'button', 'Approve the changed call', type='submit', name='answer', value='approve', class_='approve'
    )
    again = element('button', 'Edit again', type='submit', formaction=f'{request}/edit?again=1')
    return element(
        'article',
        element('h2', name),
        element('p', 'You have changed the call. Nothing is approved yet.', class_='notice'),
        content_of(display(asked, whole=True).lines, f'What {name} will be called with'),
        *(element('p', f'Warning: {each}', class_='warning') for each in warnings_of(asked)),
        element(
            'form',
            # On one line of ASCII, which no browser changes on the way.
            *hidden(place, digest=entry.digest, args=json.dumps(edited, ensure_ascii=True)),
            element('div', approve, again, _back(place), class_='buttons'),
            method='post',
            action=f'{request}/answer',
            class_='actions',
        ),
        class_='card',
    )


def _back(place: Place) -> Html:
    return element('a', 'Back', class_='button', href=f'{place.base}/')

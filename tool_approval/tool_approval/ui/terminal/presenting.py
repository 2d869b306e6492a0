"""What is shown of a call that a person has changed: what its tool would show of it, else the plain arguments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from tool_approval.core.canonical import copied
from tool_approval.core.errors import ApprovalError
from tool_approval.core.presentation import ApprovalPresentation
from tool_approval.core.protocols import Presenter
from tool_approval.core.request import ApprovalRequest
from tool_approval.core.threads import call

from .tty import Terminal, Withdrawn

PATIENCE_S = 10.0
"""Chosen: somebody waits in front of the screen, and can decide on the plain arguments too."""

POLL_S = 0.02
"""Chosen: how often it is looked whether the presenter is ready."""

NOT_SAID = 'Its tool does not say what the changed call would do.'

Present = Callable[[ApprovalRequest, ApprovalRequest], ApprovalRequest]
"""Of the request as it was made, and the changed one: the changed one with what is shown of it."""


class Presenting:
    """Asks the presenters of a controller once more, from the thread in which a person is asked.

    It has to be made on the event loop.
    """

    def __init__(self, presenters: Mapping[str, Presenter], terminal: Terminal) -> None:
        """Ask nothing yet.

        Args:
            presenters: By tool name.
            terminal: Where the person waits; tells when nobody does any more.
        """
        self._presenters = presenters
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()

    def __call__(self, before: ApprovalRequest, changed: ApprovalRequest) -> ApprovalRequest:
        """The changed request with a presentation. A presenter that fails, or takes long, is replaced by a sentence.

        Args:
            before: The request as it was made.
            changed: With other arguments, and no presentation.

        Raises:
            Withdrawn: Nobody waits any more.
        """
        presenter = self._presenters.get(changed.tool_name)
        if presenter is None:
            return with_arguments(before, changed, NOT_SAID)
        try:
            presentation = self._ask(presenter, changed)
        except Withdrawn:
            raise
        except (PermissionError, ApprovalError) as error:  # their sentences are for whoever made the call
            return with_arguments(before, changed, f'The changed call cannot be shown: {error}')
        except Exception as error:  # noqa: BLE001 - a presenter may fail in any way; its text may quote what is hidden
            return with_arguments(before, changed, f'The changed call cannot be shown ({type(error).__name__}).')
        if not isinstance(presentation, ApprovalPresentation):
            return with_arguments(before, changed, NOT_SAID)
        return changed.model_copy(update={'presentation': presentation})

    def _ask(self, presenter: Presenter, changed: ApprovalRequest) -> object:
        # The arguments are those that will be approved, so the presenter gets its own.
        given = changed.model_copy(update={'args': copied(changed.args), 'bound_to': copied(changed.bound_to)})
        asked = asyncio.run_coroutine_threadsafe(call(presenter, given), self._loop)
        until = time.monotonic() + PATIENCE_S
        try:
            while not asked.done():
                self._terminal.pause(POLL_S)
                if time.monotonic() > until:
                    raise TimeoutError
        finally:
            asked.cancel()
        return asked.result()


def with_arguments(before: ApprovalRequest, changed: ApprovalRequest, told: str) -> ApprovalRequest:
    """The changed request, to be shown by its arguments, with what the approval stays bound to.

    Args:
        before: The request as it was made; what it is bound to still holds.
        changed: With other arguments.
        told: Why there is no more.
    """
    lines = [told]
    for name, value in before.bound_to.items():
        if isinstance(value, Mapping):
            lines.append(
                f'The approval stays bound to its {name}: {", ".join(map(str, cast("Mapping[Any, Any]", value)))}'
            )
        elif name != 'cwd':
            lines.append(f'The approval stays bound to its {name}: {value!r}')
    folder = before.bound_to.get('cwd')
    if folder is None and before.presentation is not None:
        folder = before.presentation.metadata.get('cwd')
    facts = {} if folder is None else {'cwd': folder}
    presentation = ApprovalPresentation(type='text', content='\n'.join(lines), metadata=facts)
    return changed.model_copy(update={'presentation': presentation})

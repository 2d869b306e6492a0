"""Hold a session of `tool-approval run`: settings, trust, the agent and the saved conversation."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from textwrap import shorten

from tool_approval.assistant.asking import ask_at_terminal, ask_at_terminal_or_in
from tool_approval.assistant.build import RETRIES, build_assistant, load_agent
from tool_approval.assistant.conversation import REQUESTS, Conversation, hold_session
from tool_approval.assistant.saving import SavedConversation, prompts_of
from tool_approval.assistant.screen import Screen
from tool_approval.inbox import Inbox
from tool_approval.inbox.stores import SQLiteStore
from tool_approval.settings import TrustStore, load_settings, trust_settings
from tool_approval.storage.private_file import default_path

from .output import Output, UsageError
from .trust import NOT_TRUSTED, QUESTION, what_it_would_allow


class Session:
    """State of one `tool-approval run`. The session asks the user no question before `begin` is called."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        """Load the settings and the saved conversation. Closing `stack` releases its name, and closes the log.

        Raises:
            UsageError: Another conversation is already saved under this name.
            ApprovalError: The settings, the agent or the conversation cannot be used; the message gives the reason.
        """
        directory = Path.cwd()
        self._options = options
        self._stack = stack
        self._state = default_path().parent
        self._saved = self._conversation_of(options, directory)
        self._messages = None
        if self._saved is not None:
            # Locked before it is looked up: otherwise, one of two simultaneous runs would overwrite the other's
            # conversation.
            stack.enter_context(self._saved.held())
            if options.resume or options.resume_last:
                self._messages = self._saved.load()
            elif self._saved.exists():
                name = options.save
                problem = f'a conversation {name!r} exists already; continue it with --resume, or choose another name'
                raise UsageError(problem)
        self._inbox = stack.enter_context(Inbox(SQLiteStore())) if options.inbox else None
        self._agent = None if options.agent is None else load_agent(options.agent, directory=directory)
        self._loaded = load_settings(options.config, directory=directory, named=options.config is not None)
        self._built = self._build() if self._loaded.trusted else None

    @property
    def prompts(self) -> list[str]:
        """The user's messages in the resumed conversation."""
        return prompts_of(self._messages or [])

    def note(self, output: Output) -> None:
        """Report which settings apply, or that the user will be asked whether to trust the settings file."""
        if self._built is not None:
            for note in self._built[1]:
                output.note(note)
            if self._inbox is not None:
                output.note('questions are also in your inbox: `tool-approval serve` shows them in the browser')
            if self.prompts:
                output.note(f'the conversation continues after: {shorten(self.prompts[-1], 60, placeholder="...")}')
            return
        loaded = self._loaded
        output.note(
            f'{loaded.source} is not trusted: {loaded.why_untrusted}. An untrusted file can only make rules stricter.'
        )
        if self._options.is_talk:
            output.note('you will be asked to trust the file before your first message is sent')
        else:
            output.note('to trust the file, start a conversation or run `tool-approval trust`')

    def begin(self, output: Output) -> None:
        """Build the agent. In an interactive conversation, first ask the user whether to trust untrusted settings."""
        if not self._options.is_talk:
            self.note(output)
        if self._built is not None:
            return
        if self._options.is_talk:
            for line in what_it_would_allow(self._loaded):
                output.note(line)
            if output.confirm(QUESTION, NOT_TRUSTED):
                self._loaded = trust_settings(self._loaded, TrustStore())
        self._built = self._build()
        self.note(output)

    def hold(self, prompts: Iterable[str]) -> int:
        """Run one turn of the conversation for each prompt, and return the exit status."""
        assert self._built is not None, '`begin` must be called before `hold`'
        options = self._options
        return hold_session(self._built[0], prompts, saved=self._saved, obeys=options.is_talk, debug=options.debug)

    def leave(self, output: Output) -> None:
        """Print how to continue a saved conversation that has no name."""
        if self._saved is not None and not self._saved.is_named and self._saved.exists():
            output.note('saved; `tool-approval run --continue` continues the conversation')

    def _build(self) -> tuple[Conversation, tuple[str, ...]]:
        options = self._options
        return build_assistant(
            self._loaded,
            state=self._state,
            make_ui=ask_at_terminal if self._inbox is None else ask_at_terminal_or_in(self._inbox),
            screen=Screen(),
            stack=self._stack,
            mode='approve_all' if options.approve_all else 'strict' if options.strict else options.mode,
            model=options.model,
            agent=self._agent,
            confined=not options.no_os_sandbox,
            messages=self._messages,
            requests=options.requests or REQUESTS,
            retries=options.retries or RETRIES,
            timeout_s=options.timeout,
        )

    def _conversation_of(self, options: argparse.Namespace, directory: Path) -> SavedConversation | None:
        folder = self._state / 'conversations'
        name = options.save or options.resume
        if name is not None:
            return SavedConversation(folder, name)
        if options.resume_last:
            return SavedConversation.last(folder, directory)
        return SavedConversation.unnamed(folder, directory) if options.is_talk else None

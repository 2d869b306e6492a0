"""Decide whether a file operation is allowed, and keep the directories on its paths open until the operation ends."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from tool_approval.core.errors import check_type, printable
from tool_approval.tools.turns import Turns

from .config import SandboxConfig
from .content import tree
from .names import check_text, components, control_links, fold, places, starts_with
from .own_edits import OwnEdits
from .paths import OUTSIDE, SandboxRoot, SandboxRoots, WalkedPath, WalkError, is_possible, walk
from .rules import OWN_LINKS, USES, Operation, PathTarget, Use, check, check_suffixes_below
from .secrets import LooksLike, SecretFiles, SecretRules, holds_secret, read_beginning

Outcome = Literal['allow', 'ask', 'block']

MAX_BYTES = 1_000_000
"""Maximum size of a text in bytes. A longer text would not fit in the context window of most models."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Decision on an operation."""

    outcome: Outcome
    """Whether the operation may run, needs approval, or is refused."""
    reason: str
    """Reason why the operation needs approval or is blocked; empty if it is allowed."""
    files: tuple[str, ...] = ()
    """Resolved paths as `root:path`; empty if the operation is blocked."""


@dataclass(frozen=True, kw_only=True)
class FileAccess:
    """An operation that the rules do not forbid, with an open descriptor for each directory on its paths."""

    operation: Operation
    """Name of the operation."""
    targets: tuple[PathTarget, ...]
    """The path, followed by the destination of a move or copy."""

    @property
    def needs(self) -> list[str]:
        """Reasons why approval is needed; empty if no approval is needed."""
        return list(dict.fromkeys(need for target in self.targets for need in target.needs))


class FileSandbox:
    """Checks file operations against the rules of the roots. The sandbox keeps no files open, and is thread-safe."""

    def __init__(
        self,
        config: SandboxConfig | Mapping[str, Any],
        base: str | Path | None = None,
        *,
        protected: Iterable[str | Path] = (),
        max_bytes: int = MAX_BYTES,
        turns: Turns | None = None,
    ) -> None:
        """Resolve all roots.

        Args:
            config: The roots.
            base: Directory from which relative paths start; by default, the current working directory.
            protected: Files and directories that no tool may change, such as the policy file, the memory's store and
                the audit log. The files need not exist. Relative paths are resolved against `base`.
            max_bytes: Maximum size in bytes of a text that is read or written.
            turns: Calls of the conversation. While one is alone, no operation begins.

        Raises:
            TypeError: `config` is neither a `SandboxConfig` nor a mapping.
            ApprovalConfigError: Two roots are the same directory.
            ValidationError: The configuration is invalid.
            NotImplementedError: This system has no directory descriptors, which is the case on Windows.
        """
        check_type('config', config, 'a `SandboxConfig` or a mapping', SandboxConfig, Mapping)
        if not is_possible():
            raise NotImplementedError('the file sandbox needs directory descriptors, which this system lacks')
        self.config = SandboxConfig.model_validate(config) if isinstance(config, Mapping) else config
        base = Path(os.path.abspath(base or '.'))
        self.roots = SandboxRoots(self.config.paths, base)
        self.max_bytes = max_bytes
        self.turns = turns or Turns()
        """Calls of the conversation that run now."""
        links = [link for root in self.roots.all for link in control_links(Path(root.place))]
        self.protected = tuple(dict.fromkeys(place for path in (*protected, *links) for place in places(base / path)))
        """Paths that no tool may change: the given paths, the links on the way to them, and the resolved paths."""
        self._protected = [list(map(fold, components(str(place)))) for place in self.protected]
        self.own_edits = OwnEdits()
        """The newest edits that these rules allowed."""
        self._secret_rules = SecretRules(self.config.hidden, self.config.visible)
        read = [root.place for root in self.roots.all if root.config.read_approval != 'blocked']
        self.secrets = SecretFiles(self._secret_rules, read)
        """Searches the roots for files that usually contain secrets."""

    @contextmanager
    def open(
        self, operation: str, path: str, dest: str | None = None, *, is_exact: bool = False
    ) -> Generator[FileAccess]:
        """Check an operation, and keep the directories on its paths open until the `with` block ends.

        Args:
            operation: Name of the operation, one of `Operation`.
            path: The path.
            dest: The destination, for `move` and `copy`.
            is_exact: Whether a name means only the file with exactly this name, as in a command. Otherwise, a name that
                does not exist means the file whose name is the same text in another Unicode form, if there is one.

        Raises:
            PermissionError: The rules forbid the operation, or a name could mean several files. The message is for the
                model.
        """
        uses = USES.get(operation)
        if uses is None:
            raise PermissionError(f'There is no file operation {printable(operation)!r}.')
        paths = [path] if dest is None else [path, dest]
        if len(paths) != len(uses):
            raise PermissionError(f'{operation} takes {"a path and a destination" if len(uses) > 1 else "one path"}.')
        with ExitStack() as stack:
            targets = [self._target(uses[0], path, stack, is_exact)]
            if dest is not None:
                is_folder = uses[0] == 'take' and targets[0].place.is_folder
                targets.append(self._target('put' if is_folder else uses[1], dest, stack, is_exact))
                _check_pair(*targets)
            # Every key of USES is an Operation.
            yield FileAccess(operation=cast('Operation', operation), targets=tuple(targets))

    def decide(self, operation: str, path: str, dest: str | None = None) -> Decision:
        """Return the decision on an operation, without performing the operation."""
        try:
            with self.open(operation, path, dest) as access:
                files = tuple(target.shown for target in access.targets)
                needs = access.needs
        except PermissionError as error:
            return Decision(outcome='block', reason=str(error))
        return Decision(outcome='ask' if needs else 'allow', reason=' '.join(needs), files=files)

    def needs_read_approval(self, path: str) -> bool:
        """Return whether reading a file, or listing a directory, needs approval.

        Raises:
            PermissionError: The rules forbid reading.
        """
        return self._needs('read_file', 'list_files', path)

    def needs_write_approval(self, path: str) -> bool:
        """Return whether writing a file, or making a directory, needs approval.

        Raises:
            PermissionError: The rules forbid writing.
        """
        return self._needs('write_file', 'make_directory', path)

    def root_of(self, path: str) -> str | None:
        """Return the name of the root that contains a path; `None` if there is none or the path cannot be resolved."""
        root, _ = self.roots_at(path)
        return None if root is None else root.name

    def roots_at(self, path: str) -> tuple[SandboxRoot | None, Sequence[SandboxRoot]]:
        """Return the innermost root that contains a path, if any. Also return the roots below the path."""
        try:
            with closing(self._walked(path, follows=True)) as place:
                root = self.roots.of(place)
                return root, [each for each in self.roots.below(place.names) if each != root]
        except PermissionError:
            return None, []

    def holds_secrets(self, path: str) -> bool:
        """Return whether a path is a file that usually contains secrets, or a folder with such a file. This method
        searches the roots, which can take some time.
        """
        self.secrets.find()
        try:
            with closing(self._walked(path, follows=True)) as place:
                return self._is_secret(self.roots.of(place), place)
        except PermissionError:
            return False

    def _is_secret(self, root: SandboxRoot, place: WalkedPath) -> bool:
        # Attack: a link called `a.txt` leads to `.env`, or `.env` to `a.txt` (test_secrets.py).
        looks = {self._look(root, names) for names in (place.names, *place.links)}
        real = f'/{"/".join(place.names)}'
        if 'secret' in looks or any(each == real or each.startswith(f'{real}/') for each in self.secrets.known):
            return True
        try:
            if place.is_folder:
                below = tree(place.folders[-1], '.')
                return any(self._look(root, [*place.names, *path.split('/')]) != 'other' for path, _ in below)
            return 'maybe' in looks and holds_secret(place.name, read_beginning(place.parent, place.name))
        except OSError:
            # A missing or unreadable file contains no secret; a folder that cannot be searched may contain one.
            return place.is_folder

    def _look(self, root: SandboxRoot, names: Sequence[str]) -> LooksLike:
        return self._secret_rules.look(root.names, names) if starts_with(names, root.names) else 'other'

    def _needs(self, operation: str, for_folders: str, path: str) -> bool:
        with closing(self._walked(path, follows=True)) as place:
            chosen = for_folders if place.is_folder else operation
        with self.open(chosen, path, is_exact=True) as access:
            return bool(access.needs)

    def _target(self, use: Use, path: str, stack: ExitStack, is_exact: bool) -> PathTarget:
        place = stack.enter_context(closing(self._walked(path, follows=use not in OWN_LINKS, is_exact=is_exact)))
        try:
            root = self.roots.of(place)
        except PermissionError as error:
            raise PermissionError(self._refusal(path, str(error))) from None
        is_secret = use in ('read', 'edit', 'take') and self._is_secret(root, place)
        target = PathTarget(use=use, root=root, place=place, given=path, holds_secret=is_secret)
        if use not in ('read', 'list'):
            self._check_protected(target)
        check(target, [each for each in self.roots.below(place.names) if each != root])
        return target

    def _walked(self, path: str, *, follows: bool, is_exact: bool = True) -> WalkedPath:
        if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a model's argument
            raise PermissionError('A path must be a string.')
        check_text(path)
        try:
            place = walk(self.roots.base, path, follows_last=follows, is_exact=is_exact)
        except WalkError as error:
            # Outside of the roots, the message must not reveal what exists.
            root = self.roots.find(error.names) if self._goes_up_inside(error.left) else None
            reason = OUTSIDE if root is None else f'The path cannot be reached in {root.name}: {error}.'
            raise PermissionError(self._refusal(path, reason)) from None
        # Attack: `../x/../ws/a` leads to `a` only if a directory `x` exists, which would reveal that it does
        # (test_operations.py).
        if not self._goes_up_inside(place.left):
            place.close()
            raise PermissionError(self._refusal(path, OUTSIDE))
        return place

    def _goes_up_inside(self, left: Iterable[Sequence[str]]) -> bool:
        return all(map(self.roots.is_known, left))

    def _refusal(self, path: str, reason: str) -> str:
        hint = ''
        beginning, colon, rest = path.partition(':')
        if colon and beginning in self.config.paths:
            root = next(root for root in self.roots.all if root.name == beginning)
            folder = os.path.relpath(root.place, Path('/', *self.roots.base))
            hint = f' Write {printable(os.path.join(folder, rest.lstrip("/")))!r}.'
        listed = f' Allowed: {self.roots.listed()}.' if reason == OUTSIDE else ''
        return f'{printable(path, 200)!r} is refused. {reason}{hint or listed}'

    def _check_protected(self, target: PathTarget) -> None:
        names = list(map(fold, target.place.names))
        for protected in self._protected:
            # Attack: a directory moved there brings its own version of a protected file (test_decisions.py).
            is_on_the_way = target.use != 'make' and starts_with(protected, names)
            if is_on_the_way or starts_with(names, protected):
                raise PermissionError(f'{target.shown} is protected: no tool may change it.')


def _check_pair(source: PathTarget, dest: PathTarget) -> None:
    if starts_with(dest.place.names, source.place.names):
        verb = 'moved' if source.use == 'take' else 'copied'
        raise PermissionError(f'{source.shown} cannot be {verb} onto or into itself.')
    if dest.use == 'put':
        check_suffixes_below(source, dest.root)

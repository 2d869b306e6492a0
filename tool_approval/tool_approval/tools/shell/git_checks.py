"""What git does with its sub-commands' arguments: which of them only read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .hits import Hit
from .programs import GLOBAL_OPTIONS
from .words import Word


def unsafe_git(words: Sequence[Word]) -> Hit | None:
    """The argument of a git command that makes it change or run something, or reach for a program."""
    known = GLOBAL_OPTIONS['git']
    at = 1
    while at < len(words) and words[at].value.startswith('-'):
        text = words[at].value
        if text not in known.harmless and text not in ('--version', '--help', '-v', '-h', '--html-path'):
            return Hit(words[at].raw, 'it changes which repository, configuration or program git uses')
        at += 1
    sub = words[at].value if at < len(words) else ''
    rest = words[at + 1 :]
    for word in rest:
        if re.match(r'(?:--[\w-]+=)?\w+::', word.value) or '--upload-pack' in word.value:
            return Hit(word.raw, 'an address of this kind runs a program')
        if sub in _REMOTE and not word.is_fixed and '/' not in word.value:
            return Hit(word.raw, 'it is not known before it runs, and an address may run a program')
        if '%G' in word.value or '%(signature' in word.value:
            return Hit(word.raw, 'to check a signature, git runs the program that its configuration names')
        name = word.value.partition('=')[0]
        is_long = name.startswith('--') and len(name) > 2
        if is_long and any(long.startswith(name[2:]) for long in _LONG.get(sub, '').split()):
            return Hit(word.raw, f'`git {sub}` deletes, overwrites or reconfigures something with it')
    risky = _CHANGING.get(sub)
    # Attack: `git notes --ref x add`. Behind an option, the first word may be its value.
    looked_at = rest if rest and rest[0].value.startswith('-') else rest[:1]
    for word in looked_at if risky is not None else ():
        if not word.value.startswith('-') and (not risky or word.value in risky):
            return Hit(word.raw, f'`git {sub}` runs or changes something with it')
    if sub == 'config':
        return _config(rest)
    if sub == 'symbolic-ref' and len(names := [word for word in rest if not word.value.startswith('-')]) > 1:
        return Hit(names[1].raw, 'it makes the first name stand for the second')
    return _making(sub, rest) if sub in _LISTING else None


_LONG: Final = {
    'branch': 'delete move copy force set-upstream-to unset-upstream create-reflog',
    'tag': 'delete force sign local-user verify file cleanup',
    'push': 'force delete mirror prune force-with-lease',
    'reset': 'hard',
    'checkout': 'force',
    'switch': 'force discard-changes force-create',
    'apply': 'apply',
    'fsck': 'lost-found',
    'interpret-trailers': 'in-place',
    'archive': 'remote exec',
    'cat-file': 'filters textconv',
    'send-email': 'smtp-server to-cmd cc-cmd header-cmd sendmail-cmd',
    'fast-export': 'export-marks',
    'fast-import': 'export-marks export-pack-edges force',
    'stash': 'patch',
    'symbolic-ref': 'delete',
    'cherry-pick': 'edit gpg-sign strategy',
}
"""Long options, by sub-command; `option_table` has their letters."""

_REMOTE: Final = frozenset({'fetch', 'pull', 'push', 'clone', 'ls-remote', 'archive', 'remote', 'submodule'})
_CHANGING: Final = {
    'remote': frozenset(['add', 'rename', 'remove', 'rm', 'set-head', 'set-branches', 'set-url', 'prune', 'update']),
    'bisect': frozenset({'run', 'visualize', 'view'}),
    'submodule': frozenset(['foreach', 'add', 'update', 'init', 'set-url', 'sync', 'absorbgitdirs']),
    'filter-branch': frozenset[str](),
    'bundle': frozenset({'create', 'unbundle'}),
    'notes': frozenset(['add', 'append', 'copy', 'edit', 'merge', 'remove', 'prune']),
    'reflog': frozenset({'expire', 'delete', 'drop'}),
    'worktree': frozenset(['add', 'move', 'remove', 'prune', 'repair']),
    'stash': frozenset({'clear', 'drop'}),
    'hook': frozenset({'run'}),
    'maintenance': frozenset[str](),
    'for-each-repo': frozenset[str](),
    'subtree': frozenset(['add', 'merge', 'pull', 'push', 'split']),
    'lfs': frozenset(
        ['push', 'install', 'uninstall', 'migrate', 'prune', 'track', 'untrack', 'update', 'checkout', 'pull']
    ),
    'sparse-checkout': frozenset(['set', 'add', 'init', 'disable', 'reapply']),
    'replace': frozenset[str](),
    'update-ref': frozenset[str](),
}
"""Words behind a sub-command that make it another one; with none named, every operand does."""


def _config(rest: Sequence[Word]) -> Hit | None:
    while rest and rest[0].value in ('--global', '--local', '--system', '--worktree'):
        rest = rest[1:]
    if len(rest) == 1 and rest[0].is_fixed and re.fullmatch(r'[a-z][\w-]*(?:\.[\w-]+)+', rest[0].value):
        return None  # one key alone is read
    reads = ('--get', '--get-all', '--get-regexp', '--get-urlmatch', '--list', '-l', 'list', 'get')
    writes = re.compile(r'-(?:e|-(?:add|unset|replace|rename|remove|edit|fi|b))')
    if not rest or rest[0].value not in reads:
        return Hit(rest[0].raw if rest else 'config', '`git config` may set what git runs')
    found = next((word for word in rest if writes.match(word.value)), None)
    return Hit(found.raw, '`git config` may set what git runs') if found is not None else None


_LISTING: Final = {
    'branch': ['--list', '-l', '--contains', '--no-contains', '--merged', '--no-merged', '--points-at', '--show-current'],
    'tag': ['--list', '-l', '--contains', '--no-contains', '--merged', '--no-merged', '--points-at', '-n'],
}  # fmt: skip
"""The options with which a name is looked for. Without any, `git branch -v name` makes a branch of that name."""
_PLAIN: Final = re.compile(
    r'-[arviq]+|--(?:all|remotes|verbose|list|ignore-case|omit-empty|(?:no-)?(?:color|column|abbrev)'
    r'|(?:sort|format|color|column|abbrev|merged|(?:no-)?contains|no-merged|points-at)=.*)',
    re.DOTALL,
)
"""Options that are whole: what stands behind one is an option of its own, and no value."""

_ACTING: Final = {
    'branch': re.compile(
        r'-[dDmMcCfu]|--(?:delete|move|copy|force|set-upstream-to|unset-upstream|edit-description)(?:=.*)?'
    ),
    'tag': re.compile(r'-[dfsuFv]|--(?:delete|force|sign|local-user|verify|file)(?:=.*)?'),
}
"""Options with which a branch, or a tag, is changed."""


def _making(sub: str, rest: Sequence[Word]) -> Hit | None:
    """Attack: `git branch -v name`, and `git branch --sort --list name`, where `--list` is a value."""
    names: list[Word] = []
    before = sub
    for at, word in enumerate(rest):
        text = word.value
        may_be_value = before.startswith('-') and not _PLAIN.fullmatch(before)
        if not may_be_value and _lists(sub, text):
            return _undone(rest)
        if not may_be_value and _ACTING[sub].fullmatch(text):
            return None  # the table asks about it, unless a rule names it
        if text == '--':
            names += rest[at + 1 :]
            break
        if not text.startswith('-') and before not in ('--sort', '--format'):
            names.append(word)
        before = text
    return Hit(names[0].raw, f'`git {sub}` makes one of this name') if names else None


def _lists(sub: str, text: str) -> bool:
    if text.partition('=')[0] in _LISTING[sub]:
        return True
    return re.fullmatch(r'-[arvi]*l[arvi]*' if sub == 'branch' else r'-n\d+', text) is not None


def _undone(rest: Sequence[Word]) -> Hit | None:
    """Whether a list is taken back: `git branch --list --no-list name`."""
    found = next((word for word in rest if re.match(r'--no-(?:l|p)', word.value)), None)
    return Hit(found.raw, 'it may take back that names are only listed') if found is not None else None

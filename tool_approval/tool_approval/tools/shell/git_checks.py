"""What git does with its sub-commands' arguments: which of them only read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .programs import GLOBAL_OPTIONS
from .words import UnsafeArgument, Word


def unsafe_git(words: Sequence[Word]) -> UnsafeArgument | None:
    """The argument of a git command that makes it change or run something, or reach for a program."""
    known = GLOBAL_OPTIONS['git']
    at = 1
    while at < len(words) and words[at].value.startswith('-'):
        text = words[at].value
        if text not in known.harmless and text not in ('--version', '--help', '-v', '-h', '--html-path'):
            return UnsafeArgument(words[at].raw, 'it changes which repository, configuration or program git uses')
        at += 1
    sub = words[at].value if at < len(words) else ''
    if sub in _SERVING:
        return UnsafeArgument(words[at].raw, f'`git {sub}` runs what it is given, or what it is fed')
    rest = words[at + 1 :]
    for word in rest:
        if (why := _unsafe_word(sub, word)) is not None:
            return UnsafeArgument(word.raw, why)
    if sub in ('fetch', 'pull') and (hit := _pruning(rest)) is not None:
        return hit
    risky = _CHANGING.get(sub)
    # Attack: `git notes --ref x add`. Behind an option, the first word may be its value.
    looked_at = rest if rest and rest[0].value.startswith('-') else rest[:1]
    for word in looked_at if risky is not None else ():
        if not word.value.startswith('-') and (not risky or word.value in risky):
            return UnsafeArgument(word.raw, f'`git {sub}` runs or changes something with it')
    if sub == 'config':
        return _config(rest)
    if sub == 'symbolic-ref' and len(names := [word for word in rest if not word.value.startswith('-')]) > 1:
        return UnsafeArgument(names[1].raw, 'it makes the first name stand for the second')
    return _making(sub, rest) if sub in _LISTING else None


def unknown_command(words: Sequence[Word], *, named: int) -> UnsafeArgument | None:
    """A sub-command that is none of git's own, and that no rule names.

    Attack: `git t`, where the configuration says `alias.t = !touch x` (found by fuzzing).
    """
    at = next((at for at, word in enumerate(words) if at and not word.value.startswith('-')), len(words))
    if at < named or at == len(words) or words[at].value in _COMMANDS:
        return None
    return UnsafeArgument(words[at].raw, 'it is no command of git itself, and may be an alias')


_OWN: Final = """
    add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file check-attr
    check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column
    commit commit-graph commit-tree config count-objects credential credential-cache credential-store daemon
    describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack
    filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects gc get-tar-commit-id
    grep hash-object help hook http-backend http-fetch http-push imap-send index-pack init init-db instaweb
    interpret-trailers last-modified lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
    merge-base merge-file merge-index merge-octopus merge-one-file merge-ours merge-recursive
    merge-recursive-ours merge-recursive-theirs merge-resolve merge-subtree merge-tree mergetool mktag mktree
    multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id pickaxe prune
    prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog refs remote remote-ext
    remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay repo request-pull rerere
    reset restore rev-list rev-parse revert rm send-pack shell shortlog show show-branch show-index show-ref
    sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file
    unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit
    verify-pack verify-tag version whatchanged worktree write-tree
"""
_COMMANDS: Final = frozenset(_OWN.split())
"""Source: `git --list-cmds=main` of git 2.39, some that were added since, and `lfs`."""


def _unsafe_word(sub: str, word: Word) -> str | None:
    text = word.value
    if re.match(r'(?:--[\w-]+=)?\w+::', text) or '--upload-pack' in text:
        return 'an address of this kind runs a program'
    if sub in _REMOTE and not word.is_fixed and '/' not in text:
        return 'it is not known before it runs, and an address may run a program'
    if re.search(r'%[-+ ]?G|%\(\*?signature', text):
        return 'to check a signature, git runs the program that its configuration names'
    if (sub == 'push' and text.startswith((':', '+'))) or (sub in ('fetch', 'pull') and _OVERWRITING.match(text)):
        return f'`git {sub}` deletes or overwrites a branch with it'
    name = text.partition('=')[0]
    is_long = name.startswith('--') and len(name) > 2
    if is_long and any(long.startswith(name[2:]) for long in _LONG.get(sub, '').split()):
        return f'`git {sub}` deletes, overwrites or reconfigures something with it'
    return None


def _pruning(rest: Sequence[Word]) -> UnsafeArgument | None:
    """Attack: `git fetch -p origin 'refs/heads/*:refs/heads/*'` deletes all branches that are not there."""
    if not any(re.match(r'--pr|-[a-zA-Z]*p', word.value) for word in rest):
        return None
    found = next((word for word in rest if _INTO_BRANCHES.match(word.value)), None)
    return UnsafeArgument(found.raw, 'branches that are not there are deleted with it') if found is not None else None


_INTO_BRANCHES: Final = re.compile(r'[^-:@][^:@]*:(?!refs/remotes/|//|$)')
_OVERWRITING: Final = re.compile(r'\+[^:]*:(?!refs/remotes/)')
_LONG: Final = {
    'branch': 'delete move copy force set-upstream-to unset-upstream create-reflog',
    'tag': 'delete force sign local-user verify file cleanup',
    'push': 'force delete mirror prune force-with-lease',
    'reset': 'hard',
    'fetch': 'force stdin refmap',
    'pull': 'force refmap',
    'checkout': 'force',
    'switch': 'force discard-changes force-create',
    'apply': 'apply build-fake-ancestor',
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
"""Long options, by sub-command; `programs.toml` has their letters."""

_SERVING: Final = frozenset(
    {
        'remote-ext', 'remote-fd', 'shell', 'daemon', 'instaweb', 'web--browse', 'http-backend', 'cvsserver',
        'receive-pack',
    }
)  # fmt: skip
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


def _config(rest: Sequence[Word]) -> UnsafeArgument | None:
    while rest and rest[0].value in ('--global', '--local', '--system', '--worktree'):
        rest = rest[1:]
    if len(rest) == 1 and rest[0].is_fixed and re.fullmatch(r'[a-z][\w-]*(?:\.[\w-]+)+', rest[0].value):
        return None  # one key alone is read
    if not rest or rest[0].value not in _READS:
        return UnsafeArgument(rest[0].raw if rest else 'config', '`git config` may set what git runs')
    # Attack: `git config --get --no-get alias.p push`, with which the key is set.
    options = [word for word in rest[1:] if word.value.startswith('-')]
    values = [word for word in rest[1:] if not word.value.startswith('-')]
    found = [*(word for word in options if not _SHAPING.fullmatch(word.value)), *values[2:]]
    return UnsafeArgument(found[0].raw, '`git config` may set what git runs') if found else None


_READS: Final = ('--get', '--get-all', '--get-regexp', '--get-urlmatch', '--list', '-l', 'list', 'get')
_SHAPING: Final = re.compile(
    r'--(?:global|local|system|worktree|get|get-all|get-regexp|list|bool|int|bool-or-int|path|null|name-only'
    r'|show-origin'
    r'|show-scope|includes|all|regexp|show-names|type=[a-z-]+)|-[zl]'
)
"""Options with which `git config` reads, and says what it read."""

_LISTING: Final = {
    'branch': ['--list', '-l', '--contains', '--no-contains', '--merged', '--no-merged', '--points-at',
        '--show-current'],
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


def _making(sub: str, rest: Sequence[Word]) -> UnsafeArgument | None:
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
    return UnsafeArgument(names[0].raw, f'`git {sub}` makes one of this name') if names else None


def _lists(sub: str, text: str) -> bool:
    if text.partition('=')[0] in _LISTING[sub]:
        return True
    return re.fullmatch(r'-[arvi]*l[arvi]*' if sub == 'branch' else r'-n\d+', text) is not None


def _undone(rest: Sequence[Word]) -> UnsafeArgument | None:
    """Whether a list is taken back: `git branch --list --no-list name`."""
    found = next((word for word in rest if re.match(r'--no-(?:l|p|s(?!o))', word.value)), None)
    return UnsafeArgument(found.raw, 'it may take back that names are only listed') if found is not None else None

"""What is known of the options of everyday programs: which take no other word, and which the next one.

Of an option that is not listed here nothing is certain: it may take the next word. So `pytest --ignore out` runs the
tests of the working directory, and `sort --random-source -- -o x` writes `x`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal['flag', 'takes', 'attached', 'unknown', 'operand']
"""An option that takes no other word, one that takes the next, one with its value, one that is not known, or none."""
_NEVER: Final = re.compile('(?!)')
_WITH_VALUE: Final = re.compile(r'--[\w-]+=')
"""A long option that has its value, and takes no other word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionSpec:
    """The options of one program, or of one sub-command, that are known well enough to step over."""

    flags: re.Pattern[str] = _NEVER
    """Those that take no other word."""
    valued: re.Pattern[str] = _NEVER
    """Those that take the next word, whatever it looks like."""
    attached: re.Pattern[str] = _NEVER
    """How a word begins whose rest is a value; the last character that it matches is the first of the value, or `=`."""
    has_end: bool = True
    """Whether `--` ends the options."""
    texts: int = 0
    """How many of the first operands are no path, but a pattern or a script."""
    instead: re.Pattern[str] = _NEVER
    """Options that give the pattern, so that the first operand is none."""
    refused: re.Pattern[str] = _NEVER
    """Options with which operands are no paths at all."""
    paths_first: bool = False
    """Whether nothing behind the first option is a path to look into."""

    def kind(self, text: str) -> Kind:
        """What a word is, if it stands where an option may."""
        if self.flags.fullmatch(text):
            return 'flag'
        if not text.startswith('-') or text == '-':
            return 'operand'
        if self.valued.fullmatch(text):
            return 'takes'
        return 'attached' if self.attached.match(text) or _WITH_VALUE.match(text) else 'unknown'


def _spec(
    letters: str = '', valued: str = '', long: str = '', long_valued: str = '', *, texts: int = 0, instead: str = '(?!)',
    refused: str = '(?!)', has_end: bool = True,
) -> OptionSpec:  # fmt: skip
    """The letters of flags and of options with a value, and the names of both."""
    flags, names, values = f'[{letters}]' if letters else '(?!)', '|'.join(long.split()), '|'.join(long_valued.split())
    value = rf'-{flags}*[{valued}]' if valued else '(?!)'
    return OptionSpec(
        flags=re.compile(rf'-{flags}+|--(?:{names or "(?!)"})'),
        valued=re.compile(rf'{value}|--(?:{values or "(?!)"})'),
        attached=re.compile(rf'{value}.|--(?:{values or "(?!)"})=', re.DOTALL),
        has_end=has_end,
        texts=texts,
        instead=re.compile(instead, re.DOTALL),
        refused=re.compile(refused),
    )


_GREP: Final = _spec(
    'EFGPbchHiIlLnoqrRsvwxyzZaTU0123456789', 'eABCm',
    'colou?r line-number ignore-case count recursive word-regexp only-matching files-with-matches invert-match no-filename '
    'extended-regexp fixed-strings quiet',
    'regexp after-context before-context context max-count include exclude exclude-dir colou?r',
    texts=1, instead=r'-[A-Za-z0-9]*e.*|--regexp(?:=.*)?',
)  # fmt: skip
_HEAD: Final = _spec('qvzfF0123456789', 'nc', 'quiet silent verbose zero-terminated', 'lines bytes')
_SUMS: Final = _spec('btz', '', 'tag binary text zero')
_AWK: Final = _spec('', 'Fv', 'posix csv re-interval', texts=1)
_FD: Final = _spec(
    'HIusigaFpl0',
    'eEtdj',
    'hidden no-ignore ignore-case fixed-strings absolute-path',
    'extension exclude type max-depth',
    texts=1,
)
_PYTEST: Final = _spec(
    'qvxslh', 'kmnrpW',
    'quiet verbose exitfirst lf last-failed ff failed-first nf new-first sw stepwise no-header no-summary disable-warnings '
    'co collect-only strict strict-markers strict-config showlocals fixtures markers setup-only setup-show setup-plan '
    'runxfail noconftest full-trace no-cov continue-on-collection-errors',
    'tb maxfail durations durations-min capture import-mode log-cli-level log-level show-capture color verbosity dist '
    'numprocesses cov-fail-under timeout',
    refused='--py.*', has_end=False,
)  # fmt: skip

OPTION_SPECS: Final[Mapping[str, OptionSpec]] = {
    'find': OptionSpec(
        flags=re.compile(
            r'-(?:a|o|not|and|or|print0?|prune|depth|daystart|xdev|mount|quit|empty|true|false|readable|writable|executable'
            r'|ls|[HLP])|[!(),]'
        ),
        valued=re.compile(
            r'-(?:i?name|i?path|i?wholename|i?regex|newer(?:[acm]t)?|printf|type|maxdepth|mindepth|[mac](?:time|min)|size|user|group|perm'
            r'|samefile|i?lname)'
        ),
        has_end=False,
        paths_first=True,
    ),
    'date': OptionSpec(
        flags=re.compile(r'-[uR]|-I[a-z]*|--(?:utc|universal)|--iso-8601(?:=[a-z]+)?'),
        valued=re.compile('-d|--date|-r'),
        attached=re.compile('--date='),
        has_end=False,
    ),
    **dict.fromkeys(('grep', 'egrep', 'fgrep'), _GREP), **dict.fromkeys(('head', 'tail'), _HEAD),
    **dict.fromkeys(('awk', 'gawk', 'mawk'), _AWK), **dict.fromkeys(('fd', 'fdfind'), _FD),
    **dict.fromkeys(('pytest', 'py.test'), _PYTEST),
    **dict.fromkeys(('md5sum', 'sha1sum', 'sha224sum', 'sha256sum', 'sha384sum', 'sha512sum', 'b2sum', 'cksum'), _SUMS),
    'rg': _spec(
        'abchHiIlnNopPqsSuUvVwxF0.', 'egtTABCmrEjMd',
        'line-number no-line-number ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp '
        'files-with-matches files-without-match count count-matches only-matching invert-match hidden no-ignore '
        'no-ignore-vcs no-heading heading no-filename with-filename multiline multiline-dotall pcre2 json vimgrep trim '
        'column quiet stats text no-messages no-config',
        'regexp glob iglob type type-not after-context before-context context max-count max-depth color sort replace '
        'encoding threads max-columns max-filesize',
        texts=1, instead='-[A-Za-z0-9.]*e.*|--regexp(?:=.*)?',
    ),
    'sed': _spec(
        'nErsuz', 'e', 'quiet silent regexp-extended null-data separate posix debug unbuffered', 'expression',
        texts=1, instead='-[nErsuz]*e.*|--expression(?:=.*)?',
    ),
    'jq': _spec(
        'rncCMsSeaj', '', 'raw-output compact-output null-input color-output monochrome-output slurp sort-keys exit-status '
        'ascii-output join-output tab', texts=1,
    ),
    'ls': _spec(
        'aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1', '', 'all almost-all human-readable recursive reverse directory classify '
        'inode size numeric-uid-gid group-directories-first full-time no-group color',
    ),
    'du': _spec('abcDhHklLmPsSx0', 'd', 'all total human-readable summarize apparent-size bytes', 'max-depth'),
    'tree': _spec('adflpsughDFqNQrtcUvnACSiJXx', 'LPI', 'dirsfirst noreport prune du si'),
    'wc': _spec('clmLw', '', 'lines words chars bytes max-line-length'),
    'cat': _spec('AbeEnstTuv', '', 'number number-nonblank squeeze-blank show-all show-ends show-tabs'),
    'sort': _spec(
        'bdfgiMhnRrVcCmsuz', 'ktS', 'reverse unique numeric-sort human-numeric-sort general-numeric-sort version-sort '
        'ignore-case stable check zero-terminated', 'key field-separator parallel buffer-size',
    ),
    'uniq': _spec('cdDuiz', 'fsw', 'count repeated unique ignore-case zero-terminated'),
    'cut': _spec(
        'snz', 'dfcb', 'complement only-delimited zero-terminated', 'delimiter fields characters bytes output-delimiter'
    ),
    'diff': _spec(
        'abBcdeEHilnNpqrstTuwyZ0123456789', 'UC', 'unified brief recursive side-by-side ignore-all-space ignore-case '
        'ignore-blank-lines new-file text minimal',
    ),
    'file': _spec('bhikLNrs', 'F', 'brief mime mime-type mime-encoding dereference keep-going'),
    'curl': _spec(
        'sSfLkIigG46v#N', 'mA', 'silent show-error fail fail-with-body location insecure head include get compressed '
        'verbose no-progress-meter no-buffer ipv4 ipv6', 'max-time connect-timeout retry retry-delay user-agent max-redirs',
    ),
    'stat': _spec('Lftz', 'c', 'dereference terse file-system', 'format printf'),
    'xxd': _spec('abeiEpru', 'lscg'), 'nl': _spec('p', 'bwsvihfnld'),
    'mypy': _spec('v', '', 'strict verbose pretty ignore-missing-imports no-incremental show-error-codes'),
    'ruff': _spec('qvsne', '', 'quiet verbose silent no-cache exit-zero check diff'),
}  # fmt: skip
"""By program."""

_FLAGS: Final = (
    r'-[puwqvaiz]|-\d+|-U\d+|--(?:oneline|stat|numstat|shortstat|summary|cached|staged|name-only|name-status|follow|all|patch|raw'
    r'|no-color|graph|reverse|merges|no-merges|first-parent|quiet|exit-code|check|short|no-patch|no-ext-diff|no-textconv'
    r'|full-history|ignore-case|line-number|word-diff|ignore-all-space|include-untracked|keep-index|amend|no-edit|allow-empty'
    r'|no-verify|signoff|branch|porcelain|ignored|date=[a-z]+|unified=\d+|diff-filter=[A-Za-z]+)'
)
_PLAIN: Final = OptionSpec(flags=re.compile(_FLAGS))
GIT: Final[Mapping[str, OptionSpec]] = {
    'log': OptionSpec(
        flags=re.compile(_FLAGS),
        valued=re.compile(
            '-[nSG]|--(?:author|committer|grep|since|until|after|before|max-count|skip)'
        ),
        attached=re.compile('--(?:author|committer|grep|since|until|after|before|date|max-count|skip)='),
    ),
    'commit': OptionSpec(
        flags=re.compile(_FLAGS + '|-s'),
        valued=re.compile('-a?m|--(?:message|author|date)'),
        attached=re.compile('--(?:message|author|date)='),
    ),
    'stash': OptionSpec(
        flags=re.compile(_FLAGS), valued=re.compile('-m|--message'), attached=re.compile('--message=')
    ),
    **dict.fromkeys(('diff', 'show', 'status', 'branch', 'tag', 'add'), _PLAIN),
    'grep': OptionSpec(
        flags=re.compile(r'-[aEFGHhilLnovwz]+|--(?:cached|untracked|count|line-number|ignore-case|word-regexp)'),
        valued=re.compile('-[eABC]'),
        texts=1,
        instead=re.compile('-e'),
    ),
}  # fmt: skip
"""By sub-command of git."""

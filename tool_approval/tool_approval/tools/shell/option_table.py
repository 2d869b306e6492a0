"""The table: for each program, the options that run something or write somewhere.

Written from what is known of these programs' manuals, and not checked against each release of each: an option that is
missing here does not lift a pre-approval. A long option is met by every abbreviation of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

INERT: Final = frozenset(
    [
        'echo',
        'cat',
        'ls',
        'pwd',
        'head',
        'tail',
        'wc',
        'grep',
        'egrep',
        'fgrep',
        'zgrep',
        'cut',
        'tr',
        'nl',
        'tac',
        'rev',
        'fold',
        'fmt',
        'paste',
        'join',
        'comm',
        'cmp',
        'diff',
        'seq',
        'basename',
        'dirname',
        'realpath',
        'readlink',
        'stat',
        'du',
        'df',
        'uname',
        'whoami',
        'id',
        'groups',
        'md5sum',
        'sha1sum',
        'sha224sum',
        'sha256sum',
        'sha384sum',
        'sha512sum',
        'b2sum',
        'cksum',
        'sum',
        'od',
        'hexdump',
        'strings',
        'expr',
        'true',
        'false',
        ':',
        'sleep',
        'which',
        'type',
        'nproc',
        'arch',
        'tty',
        'printenv',
        'column',
        'factor',
        'yes',
        'base64',
        'base32',
        'expand',
        'unexpand',
        'uptime',
        'free',
        'pgrep',
        'pidof',
        'jq',
        'numfmt',
        'pathchk',
        'users',
        'who',
        'dir',
        'vdir',
        'lscpu',
        'lsblk',
        'getconf',
        'tsort',
        'pr',
        'look',
        'colrm',
        'break',
        'continue',
        'exit',
        'return',
        'cal',
        'locale',
    ]
)
"""Programs that read and print: none of their options runs or writes anything."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is dangerous about one program's options."""

    short: str = ''
    """Letters."""
    valued: str = ''
    """Letters that take the rest of the word as their value."""
    long: tuple[str, ...] = ()
    """Names, without the dashes."""
    safe: frozenset[str] = frozenset()
    """Names that only look like the shortening of a dangerous one."""
    words: frozenset[str] = frozenset()
    """Options of one dash and many letters."""
    by_sub: Mapping[str, str] = field(default_factory=dict[str, str])
    """More letters, by sub-command."""
    harmless: re.Pattern[str] | None = None
    """Options with such a value, attached or in the next word, that do no harm although their names are above."""


def _entry(
    short: str = '', valued: str = '', long: str = '', words: str = '', *, safe: str = '', harmless: str = '',
    **by_sub: str,
) -> Entry:  # fmt: skip
    return Entry(
        short=short,
        valued=valued,
        long=tuple(long.split()),
        safe=frozenset(safe.split()),
        words=frozenset(words.split()),
        harmless=re.compile(harmless) if harmless else None,
        by_sub={name.replace('_', '-'): letters for name, letters in by_sub.items()},
    )


_VIM: Final = _entry('cSsuUwWV', '', 'cmd startuptime remote', '+ -es')
_PSQL: Final = _entry('cfoLv', 'hpUd', 'command file output log-file set variable')
_MYSQL: Final = _entry('e', 'hPuD', 'execute tee pager init-command defaults-file defaults-extra-file login-path')
_AWK: Final = _entry('fEildopDW', 'Fv', 'file exec include load dump-variables pretty-print profile debug')
_LESS: Final = _entry('oOkpTt', '', 'log-file LOG-FILE lesskey-file lesskey-src pattern tag', '+')
_NODE: Final = _entry('eprCi', '', 'eval print require import loader experimental-loader env-file interactive '
                      'inspect inspect-brk cpu-prof heap-prof diagnostic-dir report-dir trace-event-file-pattern run '
                      'openssl-config redirect-warnings build-snapshot')  # fmt: skip
_PIP: Final = _entry('rcteif', '', 'requirement constraint target editable index-url extra-index-url find-links '
                     'log proxy config-settings global-option root prefix src cache-dir python report cert')  # fmt: skip

TABLE: Final[Mapping[str, Entry]] = {
    'find': _entry(words='-delete -fprint -fprint0 -fprintf -fls -ok -okdir -files0-from'),
    'fd': _entry('xX', 'eEtdSocj', 'exec exec-batch'), 'fdfind': _entry('xX', 'eEtdSocj', 'exec exec-batch'),
    'rg': _entry('z', 'egtTABCmrjMEdf', 'pre hostname-bin search-zip', safe='pretty'),
    'ag': _entry('z', 'GABCm', 'pager'), 'ack': _entry('', 'ABCm', 'pager ackrc output'),
    'bat': _entry('', 'lHr', 'pager config-file diff generate-config-file'),
    'batcat': _entry('', 'lHr', 'pager config-file diff generate-config-file'),
    'git': _entry('', '', 'output ext-diff textconv upload-pack receive-pack exec extcmd tool open-files-in-pager '
                  'output-directory template config upload-archive separate-git-dir edit-description strategy '
                  'show-signature hook gpg-sign editor edit interactive trailer-command tree-filter msg-filter '
                  'index-filter env-filter directory reference pager filter-command',
                  safe='output-indicator-new text', grep='O', hash_object='w', rebase='xi', difftool='xt', mergetool='t', clone='ucb',
                  archive='o', format_patch='o', fast_export='', add='ipe', help='w', log='', config='ef',
                  ls_remote='', fetch='', merge='s', checkout='fB', commit='SF', tag='sudfFv',
                  branch='dDmMcCfu', push='fd', switch='fC'),
    'sort': _entry('oTS', 'kt', 'output compress-program temporary-directory files0-from'),
    'shuf': _entry('o', 'in', 'output'), 'sdiff': _entry('o', 'Iw', 'output diff-program'),
    'diff3': _entry('', 'L', 'diff-program'), 'file': _entry('Cmzf', 'FPe', 'compile magic-file uncompress'),
    'tree': _entry('oR', '', 'output'), 'iconv': _entry('o', 'ft', 'output'), 'ss': _entry('DKF', 'fN', 'diag kill'),
    'date': _entry('sf', 'drI', 'set file'), 'man': _entry('PHTXZCMl', 'LmSse', 'pager html troff-device gxditview ditroff '
                                                      'config-file manpath local-file'),
    'less': _LESS, 'more': _entry('', '', '', '+'), 'most': _entry('', '', '', '+'),
    'sed': _entry('ifs', 'el', 'in-place file'),
    'awk': _AWK, 'gawk': _AWK, 'mawk': _AWK, 'nawk': _AWK,
    'tar': _entry('IFxPruUgA', 'fCTbX', 'to-command use-compress-program checkpoint-action info-script '
                  'new-volume-script rsh-command rmt-command extract get append update delete remove-files '
                  'index-file listed-incremental volno-file absolute-names to-stdout transform sparse-version '
                  'overwrite unlink-first recursive-unlink one-top-level concatenate catenate files-from'),
    'bsdtar': _entry('xrus', 'fCTbX', 'use-compress-program'),
    'zip': _entry('TmOBbd', 'x', 'test unzip-command move output-file temp-path log-file-path out delete', '-TT'),
    'unzip': _entry('dofn', '', ''), 'gzip': _entry('dkfrS', '', ''), '7z': _entry('o', '', ''),
    'rsync': _entry('e', 'fBM', 'rsh rsync-path log-file partial-dir temp-dir backup-dir write-batch only-write-batch '
                    'read-batch daemon config password-file files-from remove-source-files delete early-input '
                    'outbuf', safe='delay-updates'),
    'ssh': _entry('oFEDLRSWwIiJQM', 'pbBcelmO'), 'scp': _entry('SoFDiJ', 'PcXl'), 'sftp': _entry('SoFDbRisJ', 'PcXlB'),
    'ssh-keygen': _entry('fDNwY', '', ''), 'ssh-add': _entry('sSe', '', ''),
    'curl': _entry('oOKTDcQJUEFdxw', 'AbeHmrtuXyYz', 'output remote-name remote-name-all config upload-file '
                   'dump-header cookie-jar output-dir trace trace-ascii stderr libcurl etag-save hsts alt-svc '
                   'quote create-dirs remote-header-name netrc-file cert key engine egd-file random-file form '
                   'unix-socket abstract-unix-socket proxy preproxy doh-url resolve connect-to variable write-out '
                   'data data-binary data-ascii data-raw data-urlencode json url-query expand- ssl-sessions'),
    'wget': _entry('OoaPieUNrmkKcxB', 'ATtQwRDX', 'output-document output-file append-output directory-prefix '
                   'input-file execute use-askpass config post-file body-file save-cookies load-cookies '
                   'warc-file mirror recursive hsts-file rejected-log method', safe=''),
    'sqlite': _entry('', '', '', '-cmd -init -batch -interactive -A -ar'), 'duckdb': _entry('cf', '', 'init', '-cmd -init'),
    'psql': _PSQL, 'mysql': _MYSQL, 'mariadb': _MYSQL,
    'terraform': _entry(words='-chdir -out -state -state-out -backup -plugin-dir -backend-config -var-file -write'),
    'make': _entry('fCIEopW', 'jlO', 'file makefile directory include-dir eval old-file new-file assume-old what-if'),
    'gmake': _entry('fCIEoW', 'jlO', 'file makefile directory include-dir eval'),
    'cmake': _entry('EPCD', '', 'build install'), 'ninja': _entry('Cft', 'jkl'),
    'npm': _entry('Cgc', '', 'prefix script-shell node-options userconfig globalconfig cache global call init-module '
                  'git shell editor browser viewer onload-script registry node-gyp package', safe='cache-min'),
    'npx': _entry('cp', '', 'call package node-options script-shell'), 'yarn': _entry('', '', 'cwd use-yarnrc modules-folder'),
    'pnpm': _entry('Cc', '', 'dir prefix shell-mode script-shell node-options'),
    'pip': _PIP, 'uv': _entry('', '', 'with project directory config-file python index with-requirements default-index'),
    'pytest': _entry('pcoW', 'knmr', 'rootdir confcutdir basetemp junit-xml junitxml resultlog log-file debug cov-report '
                     'cov-config pdbcls override-ini config-file pastebin report-log html pdb trace cov-append '
                     'inifile pythonwarnings doctest-glob doctest-modules trace-config cache-clear snapshot-update '
                     'json-report-file benchmark-json alluredir durations-path ds',
                     safe='tb cov co collect-only durations durations-min',
                     harmless=r'-p ?no:\w+|--cov-report[= ]term(?:-missing)?(?::skip-covered)?'),
    'mypy': _entry('c', 'mp', 'config-file python-executable install-types junit-xml cache-dir any-exprs-report html-report '
                   'cobertura-xml-report linecount-report linecoverage-report lineprecision-report txt-report '
                   'xml-report xslt-html-report xslt-txt-report custom-typeshed-dir shadow-file custom-typing-module '
                   'command plugin', safe='cache-fine-grained python-version'),
    'ruff': _entry('', '', 'fix fix-only unsafe-fixes config output-file add-noqa cache-dir write-changes watch'),
    'black': _entry('cW', 'lt', 'code config'), 'flake': _entry('', '', 'output-file tee config append-config'),
    'isort': _entry('o', '', 'settings-path settings-file'), 'pylint': _entry('', '', 'init-hook load-plugins rcfile output'),
    'bandit': _entry('oc', '', 'output configfile'), 'coverage': _entry('o', '', 'rcfile data-file'),
    'eslint': _entry('oc', '', 'fix config rulesdir output-file resolve-plugins-relative-to parser plugin cache-location '
                     'format cache-file', safe=''),
    'prettier': _entry('wc', '', 'write config plugin plugin-search-dir'), 'tsc': _entry('pb', '', 'outDir outFile build project '
                                                                              'declarationDir tsBuildInfoFile generateTrace init'),
    'jest': _entry('cu', '', 'config rootDir setupFiles globalSetup outputFile updateSnapshot testRunner runner '
                   'transform resolver reporters coverageDirectory cacheDirectory'),
    'cargo': _entry('CZ', '', 'config manifest-path target-dir out-dir artifact-dir fix', safe='target'),
    'rustc': _entry('oC', 'lL', 'out-dir emit codegen sysroot'),
    'go': _entry(words='-exec -toolexec -vettool -C -o -overlay -modfile -pkgdir -asmflags -gcflags -ldflags -cpuprofile '
                 '-memprofile -blockprofile -mutexprofile -coverprofile -trace -outputdir -w -fix -u -compiler '
                 '-c'),
    'gofmt': _entry('w', '', '', '-w -cpuprofile'), 'gcc': _entry('oBT', 'DILlOWf', '', '-wrapper -specs -fplugin -save-temps -dumpbase'),
    'cc': _entry('oB', 'DILlOWf', '', '-wrapper -specs -fplugin'), 'clang': _entry('oB', 'DILlOWf', '', '-fplugin -load'),
    'docker': _entry('vH', '', 'volume mount privileged config context host entrypoint pid device cap-add output '
                     'cidfile iidfile env-file tlscacert'),
    'podman': _entry('v', '', 'volume mount privileged config entrypoint pid device cap-add root runroot'),
    'kubectl': _entry('fks', 'noclL', 'kubeconfig filename kustomize server token as cache-dir template raw '
                      'profile-output client-certificate'),
    'helm': _entry('f', '', 'post-renderer kubeconfig plugins'), 'gh': _entry('', '', 'hostname input'),
    'journalctl': _entry('D', 'nupSUtgo', 'directory file root vacuum-size vacuum-time vacuum-files rotate flush '
                         'cursor-file sync setup-keys image'),
    'systemctl': _entry('HM', '', 'host root machine'), 'openssl': _entry(words='-out -engine -config -keyout -writerand -provider'),
    'gpg': _entry('o', '', 'output homedir options exec-path photo-viewer status-file logger-file'),
    'jq': _entry(), 'yq': _entry('is', '', 'inplace in-place split-exp from-file'),
    'xmllint': _entry('o', '', 'output shell'), 'pandoc': _entry('ofFLd', 't', 'output filter lua-filter defaults pdf-engine '
                                                       'template extract-media log data-dir'),
    'gdb': _entry('x', '', 'command init-command eval-command init-eval-command args', '-ex -x -iex -ix -batch -args'),
    'tcpdump': _entry('wzFr', 'i'), 'nmap': _entry('o', 'p', 'script script-args datadir servicedb resume stylesheet', '-oN -oX -oG -oA -oS -iL'),
    'nc': _entry('ecl', '', 'exec sh-exec lua-exec'), 'ncat': _entry('ecl', '', 'exec sh-exec lua-exec'),
    'ip': _entry('bn', '', 'batch netns', '-batch -b'), 'time': _entry('oa', 'f', 'output append'),
    'ps': _entry(), 'lsof': _entry('D'), 'top': _entry('b'), 'env': _entry('S', 'uC', 'split-string'),
    'xargs': _entry(), 'vim': _VIM, 'vi': _VIM, 'nvim': _VIM, 'view': _VIM, 'ex': _VIM, 'rvim': _VIM, 'vimdiff': _VIM,
    'emacs': _entry('lf', '', 'eval load funcall execute script batch', '-eval --eval -batch'),
    'ed': _entry(), 'nano': _entry('socC', '', 'speller operatingdir backupdir'),
    'python': _entry('cim', 'WX', 'check-hash-based-pycs'), 'pypy': _entry('cim', 'WX'),
    'perl': _entry('eEpniMmIsSxd', '', ''), 'ruby': _entry('eprnIiCxS', '', 'eval'), 'node': _NODE, 'nodejs': _NODE,
    'php': _entry('rBRFEdfcSz', '', 'run process-code process-file'), 'lua': _entry('eli', '', ''), 'luajit': _entry('elij', '', ''),
    'deno': _entry('A', '', 'allow-all allow-run allow-write'), 'bun': _entry('epr', '', 'eval print preload require'),
    'tclsh': _entry(), 'julia': _entry('eELpJ', '', 'eval print load'), 'rscript': _entry('e'), 'r': _entry('ef', '', 'file'),
    'expect': _entry('cf'), 'guile': _entry('cels'), 'osascript': _entry('e'), 'ghc': _entry('eo'),
    'java': _entry('', '', '', '-agentlib -agentpath -javaagent -jar -cp -classpath'),
    'ctags': _entry('fo', '', 'options output filter'), 'fzf': _entry('', '', 'preview bind execute become listen'),
    'dmesg': _entry('cCDEn', '', 'clear read-clear console-off console-on'), 'crontab': _entry('er'),
    'script': _entry('c', '', 'command'), 'apt': _entry('oc', '', 'option config-file'), 'apt-get': _entry('oc', '', 'option config-file'),
    'dpkg': _entry('', '', 'root instdir admindir path-include'), 'objdump': _entry('', '', 'plugin'), 'nm': _entry('', '', 'plugin'),
    'split': _entry('', 'abCln', 'filter'), 'install': _entry('', '', 'strip-program'),
    'mocha': _entry('r', '', 'require config package spec file'), 'mvn': _entry('f', '', 'file settings global-settings'),
    'gradle': _entry('Ibp', '', 'init-script build-file project-dir include-build settings-file'),
    'clang-format': _entry('i'), 'shfmt': _entry('w', '', 'write'), 'autopep': _entry('i', '', 'in-place'),
    'yapf': _entry('i', '', 'in-place'), 'goimports': _entry('w', '', '', '-w'), 'rspec': _entry('rIo', '', 'require options out'),
    'vitest': _entry('cu', '', 'config update'), 'tox': _entry('c', '', 'conf root workdir'), 'ctest': _entry('S', '', 'script'),
    'stylelint': _entry('', '', 'fix config config-basedir custom-syntax output-file'),
    'strace': _entry('o', 'e', 'output'), 'mail': _entry('AaSE'), 'sendmail': _entry('CX'), 'cpio': _entry('oipFO', '', 'rsh-command'),
}  # fmt: skip

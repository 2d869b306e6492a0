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
    {
        'echo', 'cat', 'ls', 'pwd', 'head', 'tail', 'wc', 'grep', 'egrep', 'fgrep', 'zgrep', 'cut', 'tr', 'nl', 'tac',
        'rev', 'fold', 'fmt', 'paste', 'join', 'comm', 'cmp', 'diff', 'seq', 'basename', 'dirname', 'realpath',
        'readlink', 'stat', 'du', 'df', 'uname', 'whoami', 'id', 'groups', 'md5sum', 'sha1sum', 'sha224sum',
        'sha256sum', 'sha384sum', 'sha512sum', 'b2sum', 'cksum', 'sum', 'od', 'hexdump', 'strings', 'expr', 'true',
        'false', ':', 'sleep', 'which', 'type', 'nproc', 'arch', 'tty', 'printenv', 'column', 'factor', 'yes',
        'base32', 'expand', 'unexpand', 'uptime', 'free', 'pgrep', 'pidof', 'jq', 'numfmt', 'pathchk', 'users', 'who',
        'dir', 'vdir', 'lscpu', 'lsblk', 'getconf', 'tsort', 'pr', 'look', 'colrm', 'break', 'continue', 'exit',
        'return', 'cal', 'locale',
    }
)  # fmt: skip
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
    """More letters, by sub-command; with a dash in front, letters that mean something else there."""
    harmless: re.Pattern[str] | None = None
    """Options with such a value, attached or in the next word, that do no harm although their names are above."""
    prefixes: tuple[str, ...] = ()
    """How a word begins that hands options on, or holds one that is not seen by its name."""
    one_dash: bool = False
    """Whether long options may be written with one dash, and short ones with two."""
    plain: tuple[str, ...] = ()
    """`long`, as `plain_name` writes them."""


def option_name(text: str) -> str:
    """The name of an option, without its dashes and its value: `javaagent` of `-javaagent:x`."""
    return re.split('[=:,.]', text.lstrip('-'), maxsplit=1)[0]


def plain_name(name: str) -> str:
    """A name as it is compared: `outDir`, `out-dir` and `OUT_DIR` are one to some program."""
    return name.replace('-', '').replace('_', '').casefold()


def _entry(
    short: str = '', valued: str = '', long: str = '', words: str = '', *, safe: str = '', harmless: str = '',
    prefixes: str = '', one_dash: bool = False, **by_sub: str,
) -> Entry:  # fmt: skip
    names = tuple(long.split())
    return Entry(
        short=short,
        valued=valued,
        long=names,
        plain=tuple(map(plain_name, names)),
        safe=frozenset(safe.split()),
        words=frozenset(words.split()),
        prefixes=tuple(prefixes.split()),
        one_dash=one_dash,
        harmless=re.compile(harmless) if harmless else None,
        by_sub={name.replace('_', '-'): letters for name, letters in by_sub.items()},
    )


_VIM: Final = _entry('cSsuUwWVilq', '', 'cmd startuptime remote listen embed luamod-dev api-info', '+ -es')
_PSQL: Final = _entry('cfoLvP', 'hpUd', 'command file output log-file set variable pset')
_MYSQL: Final = _entry(
    'e', 'hPuD', 'execute tee pager init-command defaults-file defaults-extra-file login-path plugin-dir default-auth'
)
_AWK: Final = _entry('fEildopDW', 'Fv', 'file exec include load dump-variables pretty-print profile debug')
_LESS: Final = _entry(
    'oOkpTt', '', 'log-file LOG-FILE lesskey-file lesskey-src lesskey-content pattern tag tag-file', '+'
)
_NODE: Final = _entry('eprCi', '', 'eval print require import loader experimental-loader env-file interactive '
                      'inspect inspect-brk cpu-prof heap-prof diagnostic-dir report-dir trace-event-file-pattern run '
                      'openssl-config redirect-warnings build-snapshot env-file-if-exists test-reporter prof logfile '
                      'test-reporter-destination test-global-setup tls-keylog localstorage-file snapshot-blob '
                      'experimental-config-file experimental-default-config-file experimental-sea-config watch-path '
                      'report-directory build-sea trace-event-categories trace-turbo redirect-code-traces', prefixes='--perf- --perf_')  # fmt: skip
_NPM: Final = _entry('CgcwF', '', 'prefix dir local-prefix script-shell node-options userconfig globalconfig cache global call '
                     'init-module git shell editor browser viewer onload-script registry node-gyp package workspace '
                     'workspaces ws workspace-root include-workspace-root filter config shell-mode pnpmfile '
                     'global-pnpmfile global-dir store-dir pack-destination logs-dir proxy https-proxy location '
                     'allow-scripts', safe='cache-min all', one_dash=True)  # fmt: skip
_NPX: Final = _entry('cpw', '', 'call package node-options script-shell workspace prefix registry', one_dash=True)
_GCC: Final = _entry('oBT', 'DILlOWfimgx', 'output for-linker for-assembler specs prefix save-temps write-dependencies '
                     'write-user-dependencies sysroot gcc-toolchain ld-path config dump dyld-prefix plugin',
                     '-wrapper -specs -fplugin -save-temps -dumpbase -dumpdir -aux-info -load -MF -MD -MMD -ivfsoverlay '
                     '-ccc-gcc-name -ccc-install-dir -imultilib -iplugindir -working-directory -fprofile-generate '
                     '-fmodule-mapper -fmodules-ts -time -save-stats -fdiagnostics-format -fdiagnostics-add-output',
                     prefixes='-Wl, -Wa, -Wp, -X -fplugin -fdump -fuse-ld=/ -fuse-ld=. -MF -MJ -fprofile- -fcrash-diag '
                     '-ftime-trace -fmodules-cache-path -serialize-diagnostics -print-diagnostic -gen-reproducer -cc1 '
                     '--analyze -load -fsave-opt -foptimization-record')  # fmt: skip
_LD: Final = _entry('oTMR', 'lLemhz', 'output plugin script Map version-script dynamic-list print-map dependency-file '
                    'default-script', '-plugin -Map', one_dash=True)  # fmt: skip
_TASKS: Final = _entry('fdCcgExeRrIpTDYPK', '', 'file makefile justfile taskfile rakefile gulpfile gruntfile buildfile cwd dir '
                       'directory working-directory base shell shell-arg chooser command config conf set init edit fmt eval '
                       'execute require libdir rakelibdir trace-file override init-script project-dir root workdir dotenv-path '
                       'dotenv-filename dump global toxfile noxfile envdir report', '-lib -propertyfile -logger -listener '
                       '-buildfile -find -inputhandler -main')  # fmt: skip
_CURL_TEXT: Final = r'(?:[^%]|%%|%\{\w+\})+'
"""A text for `-w` without `%output{file}`. Attack: `%%%output{x}`."""
_NC: Final = _entry('eclokxX', 'pwsiI', 'exec sh-exec lua-exec output hex-dump append-output listen keep-open proxy')
_PYTHON: Final = _entry('cimWX', '', 'check-hash-based-pycs', harmless=r'-W ?(?:error|ignore|default|always|module|once|all|[eidamo])|'
                        r'-X ?(?:dev|utf8(?:=[01])?|importtime|faulthandler|tracemalloc(?:=\d+)?)')  # fmt: skip
_PIP: Final = _entry('rcteifdw', '', 'requirement constraint target editable index-url extra-index-url find-links '
                     'log proxy config-settings global-option root prefix src cache-dir python report cert dest '
                     'wheel-dir path trusted-host')  # fmt: skip

TABLE: Final[Mapping[str, Entry]] = {
    'find': _entry(words='-delete -fprint -fprint0 -fprintf -fls -ok -okdir -files0-from'),
    'fd': _entry('xX', 'eEtdSocj', 'exec exec-batch'), 'fdfind': _entry('xX', 'eEtdSocj', 'exec exec-batch'),
    'rg': _entry('z', 'egtTABCmrjMEdf', 'pre hostname-bin search-zip', safe='pretty'),
    'ag': _entry('z', 'GABCm', 'pager'), 'ack': _entry('', 'ABCm', 'pager ackrc output'),
    'bat': _entry('', 'lHr', 'pager config-file diff generate-config-file lessopen'),
    'batcat': _entry('', 'lHr', 'pager config-file diff generate-config-file lessopen'),
    'git': _entry('', '', 'output ext-diff textconv upload-pack receive-pack exec extcmd tool open-files-in-pager '
                  'output-directory template config upload-archive separate-git-dir edit-description strategy '
                  'show-signature hook gpg-sign editor edit interactive trailer-command tree-filter msg-filter '
                  'index-filter env-filter directory reference pager filter-command filter-process',
                  safe='output-indicator-new text index', grep='O', hash_object='w', rebase='xisS', difftool='xt', mergetool='t', clone='ucb',
                  archive='o', format_patch='o', fast_export='', add='ipe', help='w', log='', config='ef',
                  ls_remote='', fetch='f', merge='sS', pull='sSf', cherry_pick='eS', revert='eS', am='S', commit_tree='S', symbolic_ref='d', bugreport='o', diagnose='o', checkout='fB', commit='SF', tag='sudfFv',
                  branch='dDmMcCfu', push='fd', switch='fC'),
    'sort': _entry('oT', 'ktS', 'output compress-program temporary-directory files0-from'),
    'shuf': _entry('o', 'in', 'output'), 'sdiff': _entry('o', 'Iw', 'output diff-program'),
    'diff3': _entry('', 'L', 'diff-program'), 'file': _entry('CmzZfp', 'FPe', 'compile magic-file uncompress uncompress-noreport files-from preserve-date'),
    'tree': _entry('oR', '', 'output'), 'iconv': _entry('o', 'ft', 'output'), 'ss': _entry('DKF', 'fN', 'diag kill'),
    'date': _entry('sf', 'drI', 'set file'), 'man': _entry('PHTXZCMl', 'LmSse', 'pager html troff-device gxditview ditroff '
                                                      'config-file manpath local-file'),
    'less': _LESS, 'more': _entry('', '', '', '+'), 'most': _entry('', '', '', '+'),
    'sed': _entry('ifs', 'el', 'in-place file'),
    'awk': _AWK, 'gawk': _AWK, 'mawk': _AWK, 'nawk': _AWK,
    'tar': _entry('IFxPruUgAcTML', 'fCbX', 'multi-volume tape-length to-command use-compress-program checkpoint-action info-script '
                  'new-volume-script rsh-command rmt-command extract get append update delete remove-files '
                  'index-file listed-incremental volno-file absolute-names to-stdout transform sparse-version '
                  'overwrite unlink-first recursive-unlink one-top-level concatenate catenate files-from create directory', safe='list file'),
    'bsdtar': _entry('xruscTI', 'fCbX', 'use-compress-program create extract files-from'),
    'zip': _entry('TmOBbd', 'x', 'test unzip-command move output-file temp-path log-file-path out delete', '-TT'),
    'unzip': _entry('dofn-', prefixes='--'), 'gzip': _entry('dkfrS', '', 'decompress uncompress keep force recursive suffix'),
    '7z': _entry('o'), 'xz': _entry('dztkfFSTc', '', 'decompress uncompress compress test force keep suffix files files0 stdout to-stdout'),
    'bzip': _entry('dzkf', '', 'decompress compress keep force'), 'zstd': _entry('odDzkfr', '', 'output-dir-flat output-dir-mirror decompress uncompress '
                                                                  'rm filelist patch-from force keep trace train'),
    'lz': _entry('dzkfmo', '', 'rm decompress compress force'),
    'rsync': _entry('eMT', 'fB', 'rsh rsync-path log-file partial-dir temp-dir backup-dir write-batch only-write-batch '
                    'read-batch daemon config password-file files-from remove-source-files remove-sent-files delete early-input '
                    'outbuf remote-option copy-as', safe='delay-updates'),
    'ssh': _entry('oFEDLRSWwIiJQM', 'pbBcelmO'), 'scp': _entry('SoFDiJ', 'PcXl'), 'sftp': _entry('SoFDbRisJ', 'PcXlB'),
    'ssh-keygen': _entry('fDNwY', '', ''), 'ssh-add': _entry('sSe', '', ''),
    'curl': _entry('oOKTDcQJUEFdxwXnHb', 'AemrtuyYz', 'output remote-name remote-name-all config upload-file '
                   'dump-header cookie-jar output-dir trace trace-ascii stderr libcurl etag-save hsts alt-svc '
                   'quote create-dirs remote-header-name netrc-file cert key engine egd-file random-file form '
                   'unix-socket abstract-unix-socket proxy preproxy doh-url resolve connect-to variable write-out '
                   'data data-binary data-ascii data-raw data-urlencode json url-query ssl-sessions request cookie '
                   'socks4 socks4a socks5 socks5-hostname proxy1.0 mail-from mail-rcpt header proxy-header etag-compare '
                   'netrc-optional', prefixes='--expand-', safe='head',
                   harmless=r'(?:-X|--request)[ =]?(?:GET|HEAD)|(?:-H|--(?:proxy-)?header)[ =]?[\w-]+:.*|(?:-[sSfLkIiv]*o ?|--output )/dev/null|'
                            rf'(?:-[sSfLkIiv]*w ?|--write-out )(?![ @]){_CURL_TEXT}'),
    'wget': _entry('OoaPieUNrmkKcxB', 'ATtQwRDX', 'output-document output-file append-output directory-prefix '
                   'input-file execute use-askpass config post-file body-file save-cookies load-cookies '
                   'warc-file mirror recursive hsts-file rejected-log method', harmless=r'-[qS]*O ?-|--output-document[ =]-'),
    'sqlite': _entry('', '', '', '-cmd -init -interactive -ar', prefixes='-A --A'), 'duckdb': _entry('cf', '', 'init', '-cmd -init'),
    'psql': _PSQL, 'mysql': _MYSQL, 'mariadb': _MYSQL,
    'terraform': _entry(words='-chdir -out -state -state-out -backup -plugin-dir -backend-config -var-file -write '
                        '-generate-config-out -junit-xml -from-module'),
    'make': _entry('fCIEopWt', 'jlO', 'file makefile directory include-dir eval old-file new-file assume-old what-if touch'),
    'gmake': _entry('fCIEopWt', 'jlO', 'file makefile directory include-dir eval old-file new-file assume-old what-if touch'),
    'cmake': _entry('EPCDSBGT', '', 'build install open workflow preset graphviz trace-redirect profiling-output debugger toolchain'), 'ninja': _entry('Cft', 'jkl'),
    'npm': _NPM, 'npx': _NPX, 'pnpm': _NPM, 'pnpx': _NPX,
    'yarn': _entry('', '', 'cwd use-yarnrc modules-folder cache-folder global-folder link-folder preferred-cache-folder '
                   'registry script-shell config mutex production-config'),
    'pip': _PIP, 'uv': _entry('p', '', 'with project directory config-file python index with-requirements default-index env-file '
                 'with-editable cache-dir target prefix find-links'),
    'pytest': _entry('pcoW', 'knmr', 'rootdir confcutdir basetemp junit-xml junitxml resultlog log-file debug cov-report '
                     'cov-config pdbcls override-ini config-file pastebin report-log html pdb trace cov-append '
                     'inifile pythonwarnings doctest-glob doctest-modules trace-config cache-clear snapshot-update '
                     'json-report-file force-regen regen-all benchmark-json benchmark-save benchmark-storage alluredir durations-path ds '
                     'inline-snapshot tx px rsyncdir store-durations',
                     safe='tb cov co collect-only durations durations-min',
                     harmless=r'-p ?no:\w+|--cov-report=|--cov-report[= ]term(?:-missing)?(?::skip-covered)?|'
                              r'-W ?(?:error|ignore|default|always|once|module)(?::[^:]*(?::[A-Za-z]*)?)?'),
    'mypy': _entry('c', 'mp', 'config-file python-executable install-types junit-xml cache-dir any-exprs-report html-report '
                   'cobertura-xml-report linecount-report linecoverage-report lineprecision-report txt-report '
                   'xml-report xslt-html-report xslt-txt-report custom-typeshed-dir shadow-file custom-typing-module '
                   'command plugin package-root cache-map quickstart-file timing-stats line-checking-stats pdb',
                   harmless='--cache-dir[ =]/dev/null',
                   safe='cache-fine-grained python-version package'),
    'ruff': _entry('ow', '', 'fix fix-only unsafe-fixes config output-file add-noqa add-ignore cache-dir write-changes watch'),
    'black': _entry('cW', 'lt', 'code config'), 'flake': _entry('', '', 'output-file tee config append-config'),
    'isort': _entry('o', '', 'settings-path settings-file sp settings config-root'), 'pylint': _entry('f', '', 'init-hook load-plugins rcfile output output-format import-graph ext-import-graph int-import-graph '
                     'extension-pkg-allow-list extension-pkg-whitelist unsafe-load-any-extension', harmless=r'(?:-f|--output-format)[ =]?(?:text|json2?|parseable|colorized|msvs|github)'),
    'bandit': _entry('oc', '', 'output configfile ini'), 'coverage': _entry('od', '', 'rcfile data-file directory'),
    'eslint': _entry('ocf', '', 'fix config rulesdir output-file resolve-plugins-relative-to parser plugin cache-location '
                     'format cache-file init inspect-config mcp suppress-all suppress-rule prune-suppressions suppressions-location', harmless=r'(?:-f|--format)[ =]?(?:stylish|json|html)'),
    'prettier': _entry('wc', '', 'write config plugin plugin-search-dir cache-location', safe='cache'), 'tsc': _entry('pb', '', 'outDir outFile build project '
                                                                              'declarationDir tsBuildInfoFile incremental composite generateTrace generateCpuProfile init', one_dash=True,
                                                                              harmless=r'(?:-p|--project)[ =](?:(?:\./)?tsconfig\.json|\.)'),
    'jest': _entry('cu', '', 'config rootDir setupFiles globalSetup outputFile updateSnapshot testRunner runner '
                   'transform resolver reporters coverageDirectory cacheDirectory filter preset testEnvironment env testSequencer '
                   'testResultsProcessor globalTeardown setupFilesAfterEnv snapshotSerializers watchPlugins modulePaths '
                   'projects roots prettierPath dependencyExtractor haste init coverageReporters snapshotResolver', safe='coverage watch run'),
    'cargo': _entry('CZ', '', 'config manifest-path target-dir out-dir artifact-dir fix open lockfile-path root', '+', safe='target',
                    prefixes='+'),
    'rustc': _entry('oCZ', 'lL', 'out-dir emit codegen sysroot extern', '+', prefixes='+'),
    'go': _entry(words='-exec -toolexec -vettool -C -o -overlay -modfile -pkgdir -asmflags -gcflags -ldflags -cpuprofile '
                 '-memprofile -blockprofile -mutexprofile -coverprofile -trace -outputdir -w -fix -u -compiler '
                 '-c -gccgoflags -debug-actiongraph -debug-trace -workfile -fuzz -fuzzcachedir -http -args -test', harmless='--?mod[ =](?:readonly|vendor)',
                 prefixes='-mod --mod -test.'),
    'gofmt': _entry('w', '', '', '-w -cpuprofile'), 'gcc': _GCC, 'ld': _LD, 'as': _entry('o', 'I', 'MD'), 'ar': _LD,
    'docker': _entry('vHoc', '', 'volume mount privileged config context host entrypoint pid device cap-add output '
                     'cidfile iidfile env-file tlscacert metadata-file cache-to secret'),
    'podman': _entry('v', '', 'volume mount privileged config entrypoint pid device cap-add root runroot'),
    'kubectl': _entry('fks', 'noclL', 'kubeconfig filename kustomize server token as cache-dir template raw '
                      'profile-output client-certificate helm-command log-file log-dir', logs='-f'),
    'helm': _entry('fd', '', 'post-renderer kubeconfig plugins output-dir destination registry-config repository-config'),
    'gh': _entry('w', '', 'hostname input method field raw-field web', api='XfF'),
    'journalctl': _entry('D', 'nupSUtgo', 'directory file root vacuum-size vacuum-time vacuum-files rotate flush '
                         'cursor-file sync setup-keys image update-catalog relinquish-var smart-relinquish-var'),
    'systemctl': _entry('HM', '', 'host root machine image force'), 'openssl': _entry(words='-out -engine -config -keyout -writerand -provider -provider-path -outdir -certsout '
                                                   '-keylogfile -sess_out -msgfile -CAcreateserial -CAserial -passout -certout -proxy -reqout '
                                                   '-respout -signer -newkey'),
    'gpg': _entry('o', '', 'output homedir options exec-path photo-viewer status-file logger-file log-file attribute-file '
                  'agent-program dirmngr-program keyboxd-program gpgconf keyring primary-keyring secret-keyring '
                  'trustdb-name load-extension keyserver'),
    'jq': _entry(), 'yq': _entry('is', '', 'inplace in-place split-exp split-exp-file from-file'),
    'xmllint': _entry('o', '', 'output shell noent xinclude dtdvalid loaddtd catalogs path load-trace', one_dash=True), 'pandoc': _entry('ofFLdtrw', '', 'output filter lua-filter defaults pdf-engine template extract-media log '
                                                       'data-dir to from read write', harmless=r'(?:-[ftrw]|--(?:from|to|read|write))[ =]?[a-z0-9_+-]+'),
    'gdb': _entry('x', '', 'command init-command eval-command init-eval-command args', '-ex -x -iex -ix -batch -args', one_dash=True),
    'tcpdump': _entry('wzFrVG', 'i'), 'nmap': _entry('oi', 'p', 'script script-args datadir servicedb resume stylesheet', '-oN -oX -oG -oA -oS -iL', one_dash=True),
    'nc': _NC, 'ncat': _NC, 'netcat': _NC,
    'ip': _entry('bn', '', 'batch netns', '-batch -b', harmless='-br|-brief'), 'time': _entry('oa', 'f', 'output append'),
    'ps': _entry(), 'lsof': _entry('D'), 'top': _entry('b', harmless=r'-b|-bn ?\d+'), 'env': _entry('S', 'uC', 'split-string'),
    'xargs': _entry(), 'vim': _VIM, 'vi': _VIM, 'nvim': _VIM, 'view': _VIM, 'ex': _VIM, 'rvim': _VIM, 'vimdiff': _VIM,
    'emacs': _entry('lf', '', 'eval load funcall execute script batch', '-eval --eval -batch', one_dash=True),
    'ed': _entry(), 'nano': _entry('socC', '', 'speller operatingdir backupdir'),
    'python': _PYTHON, 'pypy': _PYTHON,
    'perl': _entry('eEpniMmIsSxdFaDu', '', ''), 'ruby': _entry('eprnIiCxS', '', 'eval'), 'node': _NODE, 'nodejs': _NODE,
    'php': _entry('rBRFEdfcSz', '', 'run process-code process-file'), 'lua': _entry('eli', '', ''), 'luajit': _entry('elij', '', ''),
    'deno': _entry('AWco', '', 'allow-all allow-run allow-write allow-ffi allow-import config import-map preload v8-flags output fix coverage junit-path'), 'bun': _entry('epru', '', 'eval print preload require update-snapshots reporter-outfile cwd'),
    'tclsh': _entry(), 'julia': _entry('eELpJ', '', 'eval print load'), 'rscript': _entry('e'), 'r': _entry('ef', '', 'file'),
    'expect': _entry('cf'), 'guile': _entry('cels'), 'osascript': _entry('e'), 'ghc': _entry('eo'),
    'java': _entry('', '', '', '-agentlib -agentpath -javaagent -jar -cp -classpath -p -m -Xloggc -Xlog -splash',
                   prefixes='-XX:On -XX:Flags -XX:LogFile -XX:VMOptionsFile -XX:HeapDumpPath -XX:ErrorFile -Xbootclasspath '
                   '-Xrun -Xlog -XX:StartFlightRecording -D --class-path --module --upgrade-module-path --patch-module'),
    'ctags': _entry('foL', '', 'options output filter'), 'fzf': _entry('', '', 'preview bind execute become listen history with-shell'),
    'dmesg': _entry('cCDEn', '', 'clear read-clear console-off console-on'), 'crontab': _entry('er'),
    'script': _entry('c', '', 'command'), 'apt': _entry('oc', '', 'option config-file'), 'apt-get': _entry('oc', '', 'option config-file'),
    'dpkg': _entry('', '', 'root instdir admindir path-include pre-invoke post-invoke status-logger log'), 'objdump': _entry('', '', 'plugin'), 'nm': _entry('', '', 'plugin'),
    'split': _entry('', 'abCln', 'filter'), 'install': _entry('', '', 'strip-program'),
    'mocha': _entry('rRunO', '', 'require config package spec file reporter ui node-option global-setup opts reporter-option import '
                    'loader experimental-loader',
                    harmless=r'(?:-R|--reporter)[ =]?(?:spec|dot|json|min|list|tap)|(?:-u|--ui)[ =]?(?:bdd|tdd|qunit|exports)'),
    'mvn': _entry('', '', 'file settings global-settings toolchains define log-file', prefixes='-f -s -t -l -gs -gt -D',
                  harmless=r'-ff|-fn|-fae|-D(?:test=[\w.#*]+|skipTests(?:=true)?)'),
    'gradle': _entry('IbpcgDP', '', 'init-script build-file project-dir include-build settings-file gradle-user-home system-prop '
                     'project-prop project-cache-dir'),
    'clang-format': _entry('i', one_dash=True), 'clang-tidy': _entry('p', '', 'fix fix-errors fix-notes config config-file load export-fixes '
                                                                     'vfsoverlay store-check-profile extra-arg', one_dash=True),
    'shfmt': _entry('w', '', 'write apply-ignore', one_dash=True), 'autopep': _entry('i', '', 'in-place'),
    'yapf': _entry('i', '', 'in-place'), 'goimports': _entry('w', '', '', '-w'), 'rspec': _entry('rIoOf', '', 'require options out init format',
                                                                                      harmless=r'(?:-f|--format)[ =]?(?:p|d|j|progress|documentation|json)'),
    'vitest': _entry('cur', '', 'config update root dir reporter outputFile globalSetup environment execArgv api ui browser poolOptions '
                     'diff workspace', prefixes='--coverage.',
                     harmless=r'--reporter[ =]?(?:default|verbose|dot|json|tap|basic)'),
    'tox': _entry('cx', 'ep', 'conf root workdir override devenv sdistonly installpkg result-json hashseed-file runner discover '
                  'toxinidir'),
    'ctest': _entry('SDOT', '', 'script output-log output-junit test-dir build-and-test dashboard'),
    'stylelint': _entry('of', '', 'fix config config-basedir custom-syntax custom-formatter output-file formatter cache-location'),
    **dict.fromkeys(('just', 'task', 'rake', 'scons', 'bmake', 'remake', 'invoke', 'inv', 'doit', 'gulp', 'grunt', 'ant', 'nox', 'mage', 'poe',
                     'pre-commit', 'waf', 'meson'), _TASKS),
    'hg': _entry('R', '', 'config config-file cwd repository debugger profile'),
    'svn': _entry('', '', 'diff-cmd diff3-cmd editor-cmd config-dir config-option'),
    'dotnet': _entry('plo', '', 'property output logger binary-logger', '-bl -flp', prefixes='-p: -bl: -property'),
    'bazel': _entry('', '', 'workspace_status_command run_under action_env output_base bazelrc override_repository', one_dash=True),
    'rpm': _entry('EieUFD', '', 'pipe eval define load rcfile macros erase install upgrade import root dbpath'),
    'kustomize': _entry('o', '', 'enable-exec enable-alpha-plugins helm-command output', one_dash=True),
    'zig': _entry('', '', 'build-file build-runner global-cache-dir cache-dir prefix', one_dash=True),
    'nginx': _entry('cgpes'), 'composer': _entry('d', '', 'working-dir'), 'stack': _entry('', '', 'stack-yaml work-dir exec file-watch'),
    'ansible-playbook': _entry('ie', '', 'vault-password-file vault-id inventory extra-vars module-path connection ssh-common-args '
                               'become-password-file connection-password-file'),
    'tshark': _entry('XwCFKQ', '', 'extcap-interface export-objects'),
    'biome': _entry('', '', 'write apply apply-unsafe fix unsafe config-path'), 'oxlint': _entry('c', '', 'fix config'),
    'markdownlint': _entry('fcr', '', 'fix config rules output'), 'semgrep': _entry('o', '', 'autofix output config'),
    'autoflake': _entry('i', '', 'in-place'), 'docformatter': _entry('i', '', 'in-place'), 'djlint': _entry('', '', 'reformat'),
    'pip-audit': _entry('o', '', 'fix output'), 'phpunit': _entry('c', '', 'log-junit coverage configuration bootstrap testdox-html'),
    'playwright': _entry('cu', '', 'update-snapshots config output'),
    **dict.fromkeys(('tsx', 'ts-node', 'ipython', 'groovy', 'scala', 'elixir', 'raku', 'racket', 'octave', 'gnuplot'), _entry(
        'ecrpmi', '', 'eval require import print config ext profile-dir')),
    'fuser': _entry('k', '', 'kill'),
    'libtest': _entry('', '', 'logfile'), 'dig': _entry('fk', 'bcpqtxy'), 'drill': _entry('fwik'), 'delv': _entry('ack', 'btpqx'), 'base': _entry('o', 'wib', 'output'),
    'xsltproc': _entry('o', '', 'output writesubtree path', one_dash=True), 'cloc': _entry('', '', 'out report-file vcs config strip-comments '
        'strip-code sql-append sql sum-reports found ignored counted list-file processes write-lang-def extract-with', one_dash=True),
    'scc': _entry('o', '', 'output format-multi'), 'dot': _entry('oOl'), 'sar': _entry('o'), 'perf': _entry('oi', '', 'output'),
    'sysctl': _entry('wp', '', 'write load system'), 'mount': _entry('aoBMRtTUL', '', 'all bind move rbind options fstab target source'),
    'dmidecode': _entry('', '', 'dump-bin from-dump'), 'blkid': _entry('cg', '', 'cache-file'), 'ncdu': _entry('of', '', 'ignore-config'),
    'patch': _entry('oriB', '', 'output reject-file input'), 'pyright': _entry('pvw', '', 'project pythonpath createstub venvpath watch typeshedpath threads-path'),
    'codespell': _entry('wiC', '', 'write-changes interactive config toml'), 'typos': _entry('wi', '', 'write-changes config isolated-config'),
    'rubocop': _entry('aAorcxf', '', 'autocorrect auto-correct autocorrect-all auto-correct-all auto-gen-config out require config fix-layout '
                      'format start-server init plugin'),
    'golangci-lint': _entry('c', '', 'fix config out-format output cpu-profile-path mem-profile-path trace-path'),
    'exiftool': _entry('o@', '', 'overwrite', '-config -if -execute -srcfile -stay_open -tagsfromfile -api -p -w -W -csv -json',
                       one_dash=True), 'hyperfine': _entry('SspnN', '', 'shell prepare setup cleanup export-json export-csv'),
    'objcopy': _LD, 'strip': _entry('o', '', 'output-file plugin'), 'protoc': _entry('oI', '', 'plugin descriptor_set_out '
        'dependency_out cpp_out python_out java_out go_out js_out'), 'javac': _entry('dhs', '', 'processor', '-processor -processorpath -d -s -h -J -cp',
        prefixes='-J -Xplugin --processor'),
    'lldb': _entry('sSoOkK', '', 'source source-before-file one-line one-line-before-file batch repl', one_dash=True),
    'hostname': _entry('Fb', '', 'file boot'), 'arp': _entry('dsf', '', 'delete set file'),
    'strace': _entry('oEu', 'aeIbOpPsSUX', 'output'), 'ltrace': _entry('oFlu', 'aAeDnpswx'), 'fakeroot': _entry('lfs', 'ib'),
    'xvfb-run': _entry('efs', 'np', harmless=r'(?:-s ?)?-screen [\dx +]+'), 'mail': _entry('AaSE'), 'sendmail': _entry('CX'), 'cpio': _entry('oipFO', '', 'rsh-command'),
}  # fmt: skip

SAME_ENTRY: Final[Mapping[str, str]] = {
    **dict.fromkeys(['g++', 'c++', 'cc', 'clang', 'clang++', 'gfortran', 'tcc', 'icc', 'icx', 'nvcc', 'hipcc', 'ccache'], 'gcc'),
    **dict.fromkeys(['ld.gold', 'ld.lld', 'ld.bfd', 'lld', 'mold', 'gold', 'ranlib'], 'ld'), 'py.test': 'pytest', 'gtar': 'tar',
    'gfind': 'find', 'gsort': 'sort', 'pip3': 'pip', 'base64': 'base', 'bzcat': 'bzip', 'bunzip': 'bzip', 'xzcat': 'xz', 'unxz': 'xz', 'lzma': 'xz',
    'pigz': 'gzip', 'gunzip': 'gzip', 'pbzip': 'bzip', 'zstdcat': 'zstd', 'unzstd': 'zstd', 'zstdmt': 'zstd',
    'gradlew': 'gradle', 'mvnw': 'mvn', 'bash-language-server': 'node', 'gpgv': 'gpg', 'neato': 'dot', 'fdp': 'dot',
    'apt-cache': 'apt', 'tofu': 'terraform', 'umount': 'mount', 'rustdoc': 'rustc', 'clippy-driver': 'rustc', 'ccmake': 'cmake', 'lz4': 'lz', 'lzcat': 'xz',
    **dict.fromkeys(['editor', 'sensible-editor', 'rview', 'gvim', 'gview', 'gvimdiff', 'rgvim', 'rgview', 'evim', 'eview', 'vimtutor', 'nvi', 'elvis'], 'vim'),
}  # fmt: skip
"""Programs with the options of another."""

_SCRIPTS: Final = ('jest', 'mocha', 'vitest', 'eslint', 'prettier', 'tsc')
HANDED_ON: Final = {
    'tox': ('pytest',), 'nox': ('pytest',), 'hatch': ('pytest',), 'cargo': ('libtest',), 'coverage': ('pytest',),
    'cmake': ('make', 'ninja'), 'npm': _SCRIPTS, 'npx': _SCRIPTS, 'yarn': _SCRIPTS, 'pnpm': _SCRIPTS, 'bun': _SCRIPTS,
}  # fmt: skip
"""Programs that hand on what stands behind `--`, and to which programs as a rule."""

RESPONSE_FILES: Final = frozenset(
    {
        'gcc', 'ld', 'as', 'ar', 'nm', 'objdump', 'objcopy', 'strip', 'addr2line', 'readelf', 'size', 'c++filt', 'cpp', 'pytest', 'mypy',
        'java', 'javac', 'javadoc', 'jar', 'jlink', 'kotlinc', 'scalac', 'swiftc', 'swift', 'rustc', 'ghc', 'tsc', 'nasm', 'yasm',
        'csc', 'mcs', 'vbc', 'msbuild', 'dotnet', 'dmd', 'ldc', 'gdc', 'protoc', 'clang-format', 'clang-tidy', 'opt', 'llc', 'llvm-nm', '7z', '7za',
        'exiftool', 'convert', 'magick', 'identify', 'buck', 'link', 'cl', 'armclang', 'icpx', 'flang',
    }
)  # fmt: skip
"""Programs that put the words of a file in the place of `@file`."""

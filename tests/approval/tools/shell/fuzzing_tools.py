"""Programs of every day with arguments that may run or write something, in every way to write an argument."""

READERS = [
    'echo', 'cat', 'ls', 'head', 'tail', 'wc', 'true', 'pwd', 'grep', 'env', 'sort', 'uniq', 'find', 'xargs', 'sed -n',
    'awk', 'cut', 'tr',
    'xxd', 'date', 'file', 'stat', 'du', 'df', 'ps', 'tree', 'diff', 'which', 'printf', 'jq', 'rg', 'make', 'tee',
    'ptx', 'git log', 'git diff',
    'git show', 'git status', 'git branch', 'command -v', 'test', '[', 'cd', 'nl', 'shuf', 'iconv', 'join', 'comm',
    'seq', 'basename', 'less',
    'column', 'paste', 'od', 'strings', 'base64', 'gzip -l', 'tar tf', 'zip -sf', 'perl -v', 'python3 --version', 'man',
    'openssl version', 'dd',
    'git grep', 'read', 'bash -n', 'split', 'csplit', 'timeout', 'bc', 'dc', 'xz -l', 'gcc -fsyntax-only', 'base64',
    'gzip -t',
]  # fmt: skip
"""Pre-approved in the fuzzer: a user's list, and some programs that nobody should have on one."""

WRITERS = {'dd', 'split', 'csplit', 'bc', 'dc', 'gzip -l', 'xz -l', 'zip -sf', 'openssl version', 'perl -v'}
"""Of these, those whose purpose is to write or to compute anything: they are not in the rules."""

OPTIONS = {
    'sort': ['-o', '--output', '-T', '--compress-program', '-k1', '-t', '-S1k', '--random-source', '-u',
        '--files0-from', '-R', '--parallel'],
    'uniq': ['-c', '-f', '-s', '-w', '--skip-fields', '1', 'f', 'tripped'],
    'xxd': ['-r', '-p', '-l', '-s', '-c', '1', '-ps', 'f', 'tripped'],
    'ptx': ['-G', '--traditional', '-o', '-r', 'f', 'tripped'],
    'shuf': ['-o', '--output', '-e', '-n', '1', '--random-source'],
    'iconv': ['-o', '--output', '-f', '-t', 'utf-8'],
    'find': ['-exec', '-execdir', '-ok', '-delete', '-fprint', '-fprintf', '-fls', '-name', '-type', ';', '\\;', '+',
        '{}', "'{}'", 'trip', '%p',
             '.', '-quit', '(', '\\(', '\\)', '-o', 'sh', '-c', "';'", '-files0-from', '{}+', '-a', '!', 'cat', 'env',
             '-name "$x"', '-path "$x"', '-newer', '-newer 0<f', '-newer {d}<f', '-maxdepth', '-D', '-print'],
    'xargs': ['-I', '-I{}', '{}', '-i', '-n1', '-n', '-P', '-a', 'f', '-d', '-0', 'trip', 'sh', '-c', 'sort', 'cat',
        'a', '-It', 'trip', '--replace',
              '--replace=c', '-E', '--arg-file', '--', 'find', 'env', '-x', '-r', '-L', '--max-args', '-o'],
    'sed': ['-n', '-i', '-e', '-f', '-s', '-E', '--in-place', '--expression', '--file', "'p'", "'1w tripped'",
        "'w tripped'", "'1e trip'", "'e trip'",
            "'s/a/trip/e'", "'s/a/b/w tripped'", "'/a/{w tripped\n}'", "'/a/{p;q}'", "'s/[/]/b/w tripped'", "'p;p'",
            "'{p};w tripped'", 'f', '-ni', "'y/a/b/'",
            "'1!G;h;$!d'", "'p}w tripped'", "'W tripped'", "'s|a|b|gpw tripped'", "'$!{p}'", "'1,2p'"],
    'awk': ['-f', '-F', '-v', '-W', '-e', '--', "'{print}'", "'BEGIN{system(\"trip\")}'", "'{print > \"tripped\"}'",
        "'{print | \"trip\"}'",
            "'BEGIN{\"trip\" | getline}'", "'$1>0'", "'{print $1 > 0}'", 'a=1', "'|'",
            "'BEGIN{printf \"a\" >> \"tripped\"}'", "'1>0{print}'",
            "'NR>0 || NR<1{print}'", "'{if(1>0)print \"a\">\"tripped\"}'", '"{print $x"', "';system(\"trip\")'",
            '"BEGIN{$x}"', 'f', '\'{print $1 "|" $2}\'', '\'{print "a>b"}\'', '\'/"/{print > "tripped"}\'',
            '\'{print "\\"" > "tripped"}\'',
            '\'# "\n{print "a" | "trip"}\'', '\'{x = 1 / 2; print "/" > "tripped"}\'',
            '\'{print "\\\\" | "trip" "\\\\"}\''],
    'git': ['--output', '-o', '--ext-diff', '--textconv', '-c', 'alias.t=!trip', 't', 'core.pager=trip', '-p',
        '--no-pager', '-C', '.', 'HEAD', '--', 'f',
            '--no-index', '/etc/hostname', '-O', '--exec-path=.', '--git-dir', '-1', '--stat', '-n', '1', '--format=%h',
            '--stdin', '-D', 'main', '-S',
            '--pickaxe-regex', '--help', 'log', 'diff', 'show', 'status', 'branch', '--paginate', '-P', '--word-diff',
            '--output-indicator-new=x', '--submodule',
            '-- "$x"', '-- $x', '--author "$x"', '--author', '--grep="$x"', '-S "$x"', '-n "$x"', '--since', '-e "$x"',
            '-e', '-A', '--decorate-refs',
            '-Otrip', '--open-files-in-pager=trip', 'grep', 'a'],
    'env': ['-S', '-i', '-u', 'A', 'A=1', 'PATH=.', 'trip', '-C', '.', '--split-string', '--', '-', 'LC_ALL=C', 'ls',
        '-vS', '--chdir', 'sh', '-c', '-0'],
    'date': ['-f', '-s', '-d', '+%s', '--file', '-I', '-u', 'now', '--set'],
    'file': ['-C', '-m', '-f', '-z', '--compile', '-b', 'f'],
    'tree': ['-o', '-L', '1', '-R', '-H', '.', '-a', '-P'],
    'diff': ['-l', '--to-file', '-u', 'f', '/etc/hostname'],
    'make': ['-f', '-', '--eval', "'a:;trip'", "'X!=trip'", "'X:=$(shell trip)'", 'SHELL=trip', '-C', '.', '-n', '-E',
        '--', 'a', 'f', '-j', '-I', '-s', '-k',
             '"$x"', '-p', "'.X!=trip'", 'f!=trip', '-B', '-d'],
    'tee': ['-a', 'tripped', '/dev/null', '-i', '--append', '--', '-p'],
    'less': ['-o', 'tripped', '-O', '+!trip', '-f', 'f', '-k', '-T'],
    'man': ['-P', 'trip', '-H', 'ls', '--pager', '-T', '-l', 'f'],
    'printf': ['-v', 'a', '%s', "'a[$(trip)]'", '--', '%q', '%d', "'%n'", "'100%%'", "'%%n'", "'%%%n'", "'%5%%n'",
        "'%(%%n'", "'%*%%n'", "'%-%%n'", "'%%%%n'", "'%s%%%n'"],
    'test': ['-v', '-f', 'f', '-eq', "'a[$(trip)]'", '0', '-a', '-n', '-R', '=', '-gt', '-lt', '"$x"', '$x', '1', '-nt',
        '!', '-o', '-t'],
    'read': ['-r', '-s', '-rs', '-p', '-d', "''", 'a', 'x', 'PATH', "'a[$(trip)]'", '-a', '-n', '-t', '1', '-e', '-u',
        '0', '"$x"', '<<< trip', '< f'],
    'bash': ['-n', 'f', '../../traps/start', '-c', 'trip', '-i', '-x', '+n', '--', '-s', '<<< trip', '"$x"'],
    'jq': ['-n', '.', '-f', 'f', '--args', '-L', '.', "'input'", 'env'],
    'tar': ['--checkpoint=1', '--checkpoint-action=exec=trip', '-I', 'trip', '--to-command=trip', 'f', 'tf', '-f', '-x',
        '-O', '--use-compress-program=trip'],
    'gcc': ['@f', '-o', 'tripped', '--output', '--output=tripped', '-wrapper', 'trip', '-B', '.', '-specs=f', '-MF',
        '-Wp,-MD,tripped', '-save-temps', '-x', 'c', 'f',
            '-M', '-MM', '-v', '-E', '-Xlinker', '-fplugin=./f', '-dumpdir', '--version', '-MD', '-Wall', '-I.', '-',
            '-fuse-ld=./f', '-no-integrated-cpp'],
    'base64': ['-d', '-w0', 'f', '-o', 'tripped', '-i', '--output=tripped', '--wrap=1'],
    'xz': ['-d', '-z', '-k', '-c', '-t', 'f', '--keep', '--decompress', '-f', '--suffix=a', '-v'],
    'gzip': ['-d', '-c', '-k', '-l', '-f', '-r', 'f', '-S', 'a', '--keep', '--fo', '-v', '-1'],
    'python3': ['-c', '-m', '-V', '-', '-i', "'import os;os.system(\"trip\")'", 'f'],
    'command': ['-v', '-V', '-p', 'trip', 'ls', '--', 'eval'],
    'timeout': ['1', '-k', '1', '-s', 'KILL', 'trip', 'ls', '--', '$x', '1$x', '-v', '"$x"', '--foreground'],
    'cd': ['.', '/', '-', '-P', '..', '"$x"'],
}  # fmt: skip
"""By program, what is put behind it."""

VALUES = ["' -o tripped'", "' --output=tripped'", "' -delete'", "' ; -exec trip ;'", "'1 trip'",
    "'};BEGIN{system(\"trip\")}'", "'!=trip'", "'-o'", 'tripped',
          "'a[$(trip)]'", "'$(trip)'", 'trip', "';trip'", "' -exec trip ;'", "'A=1 trip'", "'\ntrip'", '(trip a)',
          '(-o tripped)']  # fmt: skip
"""What a variable may hold."""


ASSIGNMENTS = ['PATH=../../traps', 'PATH=../../traps:$PATH', 'PATH+=:../../traps', 'PATH="../../traps"', 'PAGER=trip',
    'GIT_PAGER=trip', 'MANPAGER=trip',
               'BASH_ENV=../../traps/start', 'ENV=../../traps/start', 'LD_PRELOAD=./f', 'LD_AUDIT=./f',
               'LD_LIBRARY_PATH=.', 'PROMPT_COMMAND=trip', "PS4='$(trip)'",
               'SHELLOPTS=xtrace', 'BASHOPTS=expand_aliases', 'IFS=a', 'CDPATH=..', 'HOME=../../traps', 'TMPDIR=.',
               'POSIXLY_CORRECT=1', 'GLOBIGNORE=a',
               'GIT_TRACE=$PWD/tripped', 'GIT_TRACE2=$PWD/tripped', 'GIT_EXTERNAL_DIFF=trip', 'GIT_DIR=../../traps',
               'GIT_EXEC_PATH=../../traps',
               "GIT_CONFIG_PARAMETERS=\"'core.fsmonitor=trip'\"",
               'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=trip',
               'MAKEFILES=../../traps/rules', "MAKEFLAGS='--eval=$(shell trip)'", 'SHELL=trip', 'TAR_OPTIONS=-Itrip',
               "LESSOPEN='|trip'", 'EDITOR=trip',
               'PYTHONPATH=.', 'AWKPATH=.', 'LC_ALL=C', 'a=b', 'TZ=a']  # fmt: skip
"""Variables that may change what runs, and some that do not; `../../traps` is where the programs are traps."""


GROWING = ['sort f{}', 'find ./{}', 'git log HEAD{}', 'find . -name a{}', 'timeout 1{} ls', 'env LC_ALL=C{} ls',
    'nice -n 1{} ls', 'shuf f{}', 'xargs -n 1{} cat',
           'make a{}', 'sed -n p f{}', 'date +%s{}', 'find . -exec cat f{} \\;', 'iconv f{}', 'uniq f{}', 'printf a{}',
           'ptx f{}', 'sort ~{}', 'sort "f"{}']  # fmt: skip
"""Where the end of a word may become other words."""

ENDS = ['$x', '${x}', '"$@"', '$@', '$*', '$1', '"$x"', '$(echo {value})', '`echo {value}`', '"${x}"']


def arguments(random, program, word):
    """Some arguments for a program, each written in some way; `word` makes other words."""
    own = OPTIONS.get(program.split()[0], [])
    made = []
    for _ in range(random.randint(0, 6)):
        pick = random.random()
        text = (
            random.choice(own)
            if own and pick < 0.75
            else random.choice(OPTIONS[random.choice(list(OPTIONS))])
            if pick < 0.85
            else word()
        )
        made.append(_written(random, text))
    return made


def _written(random, text):
    match random.randint(0, 14):
        case 0 if text.startswith('--'):
            return text.partition('=')[0][: random.randint(3, 12)]
        case 1:
            return f'{text}=tripped'
        case 2:
            return f'{text}tripped'
        case 3 if len(text) == 2 and text[0] == '-':
            return f'-{random.choice("abcnrsuz")}{text[1]}'
        case 4:
            return f'{text} tripped'
        case 5:
            return f'{text}$x'
        case 6:
            return f'{text}"$x"'
        case 7:
            return f'-- {text}'
        case 8:
            return f'"{text}"'
        case 9:
            return text[:1] + '\\' + text[1:]
        case 10:
            return f'{text}"$@"'
        case _:
            return text

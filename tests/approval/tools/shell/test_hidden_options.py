"""Options that are hard to see: cut short, attached, written in another way, in a file, behind `--`, or taken back."""

import pytest

from .parts import decision, unasked

HIDDEN = {
    'in a file': [
        ('gcc', 'gcc f.c @file'), ('gcc', 'gcc -- @file'), ('gcc-12', 'gcc-12 @file'), ('gcc', 'gcc "$x"'), ('java', 'java @file'),
        ('x86_64-linux-gnu-gcc', 'x86_64-linux-gnu-gcc @file'), ('javac', 'javac @file'), ('mypy', 'mypy @file'), ('nm', 'nm @file'),
        ('objdump', 'objdump @file'), ('rustc', 'rustc @file'), ('py.test', 'py.test -- @file'), ('python -m pytest', 'python -m pytest @file'),
        ('7z', '7z l @list'), ('exiftool', 'exiftool -@ file'), ('dig', 'dig -f names'), ('dig', 'dig +short -4f names'), ('file', 'file -f names'),
        ('file', 'file --files=names'), ('tar', 'tar -t -f ./a.tar -T names'), ('tar', 'tar tTf names ./a.tar'),
    ],
    'cut short, or in other letters': [
        ('gcc', 'gcc --output=x f.c'), ('tsc', 'tsc --outdir x'), ('tsc', 'tsc --OUTFILE x'), ('jest', 'jest --root-dir=x'),
        ('jest', 'jest --setup-files=./x'), ('isort', 'isort --sett x f'), ('rsync', 'rsync --remote-opt=x a b'), ('gpg', 'gpg --agent-prog x f'),
        ('npm test', 'npm test --script-sh=./x'), ('tox', 'tox --workd=x'), ('nox', 'nox --noxf=evil.py'), ('task', 'task --taskf evil.yml'),
        ('curl', 'curl --req DELETE a'), ('curl', 'curl --expand-output x a'), ('vitest', 'vitest --outputFile.json=x'),
    ],
    'with one dash, or with two': [
        ('tsc', 'tsc -outDir x'), ('gdb', 'gdb -eval-command=x f'), ('gdb', 'gdb -ev x f'), ('xmllint', 'xmllint -shell f'), ('nmap', 'nmap -script x a'),
        ('clang-format', 'clang-format --i f'), ('clang-tidy', 'clang-tidy -fix f'), ('shfmt', 'shfmt --w f'), ('emacs', 'emacs -fu x'),
        ('npm test', 'npm test -prefix other'), ('go', 'go test --o x'), ('go', 'go test -test.cpuprofile x'),
    ],
    'attached': [
        ('java', 'java -javaagent:x.jar -version'), ('java', 'java -agentpath:./x.so -version'), ('java', 'java -XX:OnError=x -version'),
        ('gcc', 'gcc -Wl,-plugin,./x.so f.c'), ('gcc', 'gcc -Wp,-MD,x f.c'), ('gcc', 'gcc -MFx -M f.c'), ('clang', 'clang -Xclang -load f.c'),
        ('clang', 'clang -fuse-ld=./x f.c'), ('mvn', 'mvn -fevil.xml test'), ('mvn', 'mvn -Dexec=x test'), ('pnpm test', 'pnpm test --config.script-shell=./x'),
        ('python', 'python -W error::evil.X f.py'), ('pandoc', 'pandoc -t ./evil.lua f'), ('pylint', 'pylint --output-format=json:x src'),
        ('curl', 'curl -H @secret a'), ('eslint', 'eslint -f ./x.js src'), ('mocha', 'mocha --reporter ./x'), ('perl', "perl -F'/x/;system(1)' f"),
    ],
    'behind two dashes': [
        ('tox', 'tox -- -p evil'), ('npm test', 'npm test -- --require ./x'), ('yarn test', 'yarn test --require=./x'), ('cargo', 'cargo clippy -- -o x'),
        ('cargo', 'cargo rustc -- -Clinker=x'), ('cargo', 'cargo rustc -- "$x"'), ('cargo', 'cargo test -- --logfile x'),
        ('go', 'go test -args -test.testlogfile=x'),
    ],
    'taking back what the rule names': [
        ('unzip -l', 'unzip -l --l a'), ('xz -l', 'xz -l -d a.xz'), ('zstd -l', 'zstd -l -d a.zst'), ('tsc --noEmit', 'tsc --noEmit false'),
        ('prettier --check', 'prettier --check False'), ('make -n', 'make -n +n all'), ('zip -sf', 'zip -sf -sf- a'), ('x -q', 'x -q --q'),
    ],
    'running code of another place': [
        ('tox', 'tox -x testenv.commands=x'), ('tox', 'tox --override testenv.commands=x'), ('nox', 'nox -f evil.py'), ('just', 'just -f evil build'),
        ('just', 'just A=b build'), ('rake', 'rake -f evil'), ('gulp', 'gulp --cwd x'), ('scons', 'scons -C x'), ('bmake', 'bmake X!=touch'),
        ('gradle', 'gradle -Pa=b build'), ('ctest', 'ctest --output-log x'), ('npm test', 'npm test -w other'), ('npm test', 'npm test --workspace=other'),
        ('pyright', 'pyright --pythonpath ./x src'), ('cargo', 'cargo +x build'), ('man', 'man ./evil.1'), ('man', 'man "a$x"'),
    ],
    'reaching another machine': [
        ('tar', 'tar tf host:x'), ('tar', 'tar -tfhost:x'), ('tar', 'tar --list --file=host:x'), ('tar', 'tar tf "a$x"'), ('curl', 'curl --socks5 x a'),
        ('curl', 'curl -X DELETE a'), ('ip', 'ip addr del 1.2.3.4 dev x'), ('ip', 'ip a d 1.2.3.4 dev x'), ('ip', 'ip netns exec a touch x'),
        ('ip', 'ip -f inet addr add x'), ('ip', 'ip -rc 100 addr add x'), ('ip', 'ip addr "a$x"'),
    ],
    'writing': [
        ('tar', 'tar cf a f'), ('tar', 'tar -cf a f'), ('base64', 'base64 -o x f'), ('zstdcat', 'zstdcat -o x a'), ('ruff check', 'ruff check -o x'),
        ('g++-12', 'g++-12 -o x f'), ('cloc', 'cloc --vcs=x .'), ('sysctl', 'sysctl a.b=c'), ('mount', 'mount a b'), ('openssl', 'openssl x -keylogfile y'),
        ('dpkg -l', 'dpkg -l --status-logger=x'), ('coverage', 'coverage html -d x'),
    ],
}  # fmt: skip
CASES = [pytest.param(*case, id=f'{how}: {case[1]}') for how, cases in HIDDEN.items() for case in cases]


@pytest.mark.parametrize(('pattern', 'command'), CASES)
def test_an_option_that_is_hard_to_see_lifts_the_approval_of_its_program(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'


@pytest.mark.parametrize(
    'command',
    [
        'tar tvf dir/a:b.tar', 'tar --force-local -tf a:b.tar', 'tar -tzf ./a.tar.gz', 'gcc -Wall -Wextra -O2 -std=c11 -fPIC -c f.c', 'gcc --version',
        'dig example.com +short', 'dig -t mx example.com', 'tox run -e lint -- -q', 'just build', 'ip addr', 'ip -4 addr show',
        'ip -f inet addr show dev eth0', 'ip route get 1.1.1.1', 'man 3 printf', 'cargo test -- --nocapture', 'cargo clippy -- -D warnings',
        'cargo clippy -- -Wclippy::all', 'go test -run X -v -race -count=1 ./...', 'java -version', 'mvn -q -ntp test -DskipTests',
        'gradle build -x test --info', 'jest --coverage --ci', 'mocha --recursive --reporter dot', "curl -s -H 'Accept: text/plain' a", 'curl -X GET a',
        'python -W error script.py', 'xz -l a.xz', 'unzip -l a.zip', 'base64 -d f', 'pandoc -f markdown -t html a.md', 'pylint --output-format=json src',
        'ruff format --check src', 'mypy --package x', 'npm test -- --watch=false', 'npm ls --all', 'npm run lint --silent', 'yarn test --coverage',
        'pnpm build', 'objdump -d a.out', 'sysctl kernel.hostname', 'mount', 'ctest --output-on-failure', 'gh pr view 1 --json title', 'vitest run --coverage',
    ],
)  # fmt: skip
def test_the_options_of_every_day_do_not(command):
    assert decision(command, *unasked(command.split()[0])) == 'allow'


def test_what_the_rule_names_is_what_somebody_wrote_down():
    assert decision('ip addr add 1.2.3.4 dev x', *unasked('ip addr add')) == 'allow'
    assert decision('tar cf ./a.tar f', *unasked('tar cf')) == 'allow'
    assert decision('npm i x', *unasked('npm i')) == 'allow'

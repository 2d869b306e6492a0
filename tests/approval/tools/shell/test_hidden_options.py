"""Options that are hard to see: cut short, attached, written in another way, in a file, behind `--`, or taken back."""

import pytest

from tests.tables import table

from .parts import decision, unasked

HIDDEN = {
    'in a file': [
        ('gcc', 'gcc f.c @file'), ('gcc', 'gcc -- @file'), ('gcc-12', 'gcc-12 @file'), ('gcc', 'gcc "$x"'),
        ('java', 'java @file'),
        ('x86_64-linux-gnu-gcc', 'x86_64-linux-gnu-gcc @file'), ('javac', 'javac @file'), ('mypy', 'mypy @file'),
        ('nm', 'nm @file'),
        ('objdump', 'objdump @file'), ('rustc', 'rustc @file'), ('py.test', 'py.test -- @file'),
        ('python -m pytest', 'python -m pytest @file'),
        ('7z', '7z l @list'), ('exiftool', 'exiftool -@ file'), ('dig', 'dig -f names'),
        ('dig', 'dig +short -4f names'), ('file', 'file -f names'),
        ('file', 'file --files=names'), ('tar', 'tar -t -f ./a.tar -T names'), ('tar', 'tar tTf names ./a.tar'),
    ],
    'cut short, or in other letters': [
        ('gcc', 'gcc --output=x f.c'), ('tsc', 'tsc --outdir x'), ('tsc', 'tsc --OUTFILE x'),
        ('jest', 'jest --root-dir=x'),
        ('jest', 'jest --setup-files=./x'), ('isort', 'isort --sett x f'), ('rsync', 'rsync --remote-opt=x a b'),
        ('gpg', 'gpg --agent-prog x f'),
        ('npm test', 'npm test --script-sh=./x'), ('tox', 'tox --workd=x'), ('nox', 'nox --noxf=evil.py'),
        ('task', 'task --taskf evil.yml'),
        ('curl', 'curl --req DELETE a'), ('curl', 'curl --expand-output x a'), ('vitest', 'vitest --outputFile.json=x'),
    ],
    'with one dash, or with two': [
        ('tsc', 'tsc -outDir x'), ('gdb', 'gdb -eval-command=x f'), ('gdb', 'gdb -ev x f'),
        ('xmllint', 'xmllint -shell f'), ('nmap', 'nmap -script x a'),
        ('clang-format', 'clang-format --i f'), ('clang-tidy', 'clang-tidy -fix f'), ('shfmt', 'shfmt --w f'),
        ('emacs', 'emacs -fu x'),
        ('npm test', 'npm test -prefix other'), ('go', 'go test --o x'), ('go', 'go test -test.cpuprofile x'),
    ],
    'attached': [
        ('java', 'java -javaagent:x.jar -version'), ('java', 'java -agentpath:./x.so -version'),
        ('java', 'java -XX:OnError=x -version'),
        ('gcc', 'gcc -Wl,-plugin,./x.so f.c'), ('gcc', 'gcc -Wp,-MD,x f.c'), ('gcc', 'gcc -MFx -M f.c'),
        ('clang', 'clang -Xclang -load f.c'),
        ('clang', 'clang -fuse-ld=./x f.c'), ('mvn', 'mvn -fevil.xml test'), ('mvn', 'mvn -Dexec=x test'),
        ('pnpm test', 'pnpm test --config.script-shell=./x'),
        ('python', 'python -W error::evil.X f.py'), ('pandoc', 'pandoc -t ./evil.lua f'),
        ('pylint', 'pylint --output-format=json:x src'),
        ('curl', 'curl -H @secret a'), ('eslint', 'eslint -f ./x.js src'), ('mocha', 'mocha --reporter ./x'),
        ('perl', "perl -F'/x/;system(1)' f"),
    ],
    'behind two dashes': [
        ('pytest', 'pytest tests -- -p evil'), ('pytest', 'pytest -- -pev'), ('py.test', 'py.test -- -p evil'),
        ('pytest', 'pytest -- "$x" -p evil'),
        ('python -m pytest', 'python -m pytest -- -p evil'), ('sqlite3', 'sqlite3 -- -Ax'),
        ('npm test', 'npm test -- --import x'),
        ('npx jest', 'npx jest -- --config=x'),
        ('tox', 'tox -- -p evil'), ('npm test', 'npm test -- --require ./x'), ('yarn test', 'yarn test --require=./x'),
        ('cargo', 'cargo clippy -- -o x'),
        ('cargo', 'cargo rustc -- -Clinker=x'), ('cargo', 'cargo rustc -- "$x"'),
        ('cargo', 'cargo test -- --logfile x'),
        ('go', 'go test -args -test.testlogfile=x'),
    ],
    'taking back what the rule names': [
        ('terraform fmt -check', 'terraform fmt -check -check=f'),
        ('terraform fmt -check', 'terraform fmt -check --check=FALSE'),
        ('terraform fmt -check', 'terraform fmt -check --check=0'), ('tsc --noEmit', 'tsc --noEmit --no-emit=off'),
        ('unzip -l', 'unzip -l -q-l a'), ('unzip -t', 'unzip -t -q-t a'),
        ('unzip -l', 'unzip -l --l a'), ('xz -l', 'xz -l -d a.xz'), ('zstd -l', 'zstd -l -d a.zst'),
        ('tsc --noEmit', 'tsc --noEmit false'),
        ('prettier --check', 'prettier --check False'), ('make -n', 'make -n +n all'), ('zip -sf', 'zip -sf -sf- a'),
        ('x -q', 'x -q --q'),
    ],
    'running code of another place': [
        ('tox', 'tox -x testenv.commands=x'), ('tox', 'tox --override testenv.commands=x'), ('nox', 'nox -f evil.py'),
        ('just', 'just -f evil build'),
        ('just', 'just A=b build'), ('rake', 'rake -f evil'), ('gulp', 'gulp --cwd x'), ('scons', 'scons -C x'),
        ('bmake', 'bmake X!=touch'),
        ('gradle', 'gradle -Pa=b build'), ('ctest', 'ctest --output-log x'), ('npm test', 'npm test -w other'),
        ('npm test', 'npm test --workspace=other'),
        ('pyright', 'pyright --pythonpath ./x src'), ('cargo', 'cargo +x build'), ('man', 'man ./evil.1'),
        ('man', 'man "a$x"'),
    ],
    'letters without a dash': [
        ('tar', 'tar xf- a'), ('tar', 'tar x-f a'), ('tar', 'tar tfI- a'), ('tar', 'tar tMf a'), ('tar', 'tar tLf 1 a'),
        ('tar', 'tar -tMf a'),
        ('tar', 'tar -t -L 1 -f a'), ('tar', 'tar --multi-vol -tf a'), ('tar', 'tar --tape-l=1 -tf a'),
        ('sqlite3', 'sqlite3 a.sqlar -Ax'), ('sqlite3', 'sqlite3 --Ax a'),
    ],
    'behind a runner that the rule names': [
        ('coverage run -m pytest', 'coverage run -m pytest -p evil'),
        ('poetry run pytest', 'poetry run pytest -p evil'), ('uv run pytest', 'uv run pytest -c x.ini'),
        ('uv run pytest', 'uv run pytest --rootdir=x'), ('hatch run pytest', 'hatch run pytest -pevil'),
        ('uv run ruff check', 'uv run ruff check --fix .'),
        ('uvx ruff check', 'uvx ruff check --fix'), ('poetry run mypy', 'poetry run mypy --junit-xml=p src'),
        ('npx eslint', 'npx eslint --fix'),
        ('npx tsc', 'npx tsc --outDir x'), ('npx mocha', 'npx mocha -r ./evil'),
        ('npx prettier --check', 'npx prettier --check --write .'),
        ('bundle exec rspec', 'bundle exec rspec -r ./evil'), ('npm exec eslint', 'npm exec eslint --fix'),
        ('npx -y', 'npx -y jest'),
        ('docker compose exec web pytest', 'docker compose exec web pytest -p evil'),
        ('uv run python -m pytest', 'uv run python -m pytest -p evil'),
        ('poetry run coverage run -m pytest', 'poetry run coverage run -m pytest -p evil'),
    ],
    'reaching another machine': [
        ('curl', 'curl --header @secret a'), ('curl', 'curl --heade @secret a'), ('curl', 'curl --proxy-header @f a'),
        ('curl', 'curl --etag-compare f a'),
        ('curl', 'curl --netrc-optional a'), ('ifconfig', 'ifconfig eth0 down'), ('route', 'route add x'),
        ('arp', 'arp -d x'), ('gh api', 'gh api -X DELETE x'),
        ('tar', 'tar tf host:x'), ('tar', 'tar -tfhost:x'), ('tar', 'tar --list --file=host:x'),
        ('tar', 'tar tf "a$x"'), ('curl', 'curl --socks5 x a'),
        ('curl', 'curl -X DELETE a'), ('ip', 'ip addr del 1.2.3.4 dev x'), ('ip', 'ip a d 1.2.3.4 dev x'),
        ('ip', 'ip netns exec a touch x'),
        ('ip', 'ip -f inet addr add x'), ('ip', 'ip -rc 100 addr add x'), ('ip', 'ip addr "a$x"'),
    ],
    'of one program more': [
        *(('gcc', f'gcc f.c {each}') for each in ('-fmodule-mapper=x', '-fmodules-ts', '-time=x', '-MJ x', '-MJx',
            '-save-stats', '--save-stats',
                                                 '-fdiagnostics-format=sarif-file', '-fdiagnostics-add-output=x')),
        ('mocha', 'mocha --import x'), ('mocha', 'mocha --experimental-loader x'),
        ('jest', 'jest --coverageReporters x'), ('jest', 'jest --snapshot-resolver x'),
        ('vitest', 'vitest --diff x'), ('vitest', 'vitest --workspace x'),
        ('vitest', 'vitest --coverage.reportsDirectory=x'), ('prettier', 'prettier --cache-location x'),
        ('node', 'node --trace-event-categories x a.js'), ('node', 'node --perf-prof a.js'),
        ('node', 'node --trace-turbo a.js'), ('hostname', 'hostname --file=f'),
        ('hostname', 'hostname -Ff'), ('hostname', 'hostname -b'), ('openssl', 'openssl req -reqout x'),
        ('openssl', 'openssl cms -signer x'),
        ('pylint', 'pylint --unsafe-load-any-extension=y'), ('pylint', 'pylint --extension-pkg-whitelist=x'),
        ('eslint', 'eslint --suppress-all'),
        ('eslint', 'eslint --prune-suppressions'), ('docker', 'docker build --metadata-file x .'),
        ('docker', 'docker build --cache-to x .'),
        ('rsync', 'rsync --remove-sent-files a b'), ('rsync', 'rsync -T x a b'),
        ('journalctl', 'journalctl --update-catalog'), ('mypy', 'mypy --pdb'),
    ],
    'writing': [
        ('tar', 'tar cf a f'), ('tar', 'tar -cf a f'), ('base64', 'base64 -o x f'), ('zstdcat', 'zstdcat -o x a'),
        ('ruff check', 'ruff check -o x'),
        ('g++-12', 'g++-12 -o x f'), ('cloc', 'cloc --vcs=x .'), ('sysctl', 'sysctl a.b=c'), ('mount', 'mount a b'),
        ('openssl', 'openssl x -keylogfile y'),
        ('dpkg -l', 'dpkg -l --status-logger=x'), ('coverage', 'coverage html -d x'),
    ],
}  # fmt: skip
CASES = [case for cases in HIDDEN.values() for case in cases]


@table(('pattern', 'command'), CASES)
def test_an_option_that_is_hard_to_see_lifts_the_approval_of_its_program(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'


@table(
    'command',
    [
        'tar tvf dir/a:b.tar', 'tar --force-local -tf a:b.tar', 'tar -tzf ./a.tar.gz',
        'gcc -Wall -Wextra -O2 -std=c11 -fPIC -c f.c', 'gcc --version',
        'dig example.com +short', 'dig -t mx example.com', 'tox run -e lint -- -q', 'just build', 'ip addr',
        'ip -4 addr show',
        'ip -f inet addr show dev eth0', 'ip route get 1.1.1.1', 'man 3 printf', 'cargo test -- --nocapture',
        'cargo clippy -- -D warnings',
        'cargo clippy -- -Wclippy::all', 'go test -run X -v -race -count=1 ./...', 'java -version',
        'mvn -q -ntp test -DskipTests',
        'gradle build -x test --info', 'jest --coverage --ci', 'mocha --recursive --reporter dot',
        "curl -s -H 'Accept: text/plain' a", 'curl -X GET a',
        'python -W error script.py', 'xz -l a.xz', 'unzip -l a.zip', 'base64 -d f', 'pandoc -f markdown -t html a.md',
        'pylint --output-format=json src',
        'ruff format --check src', 'mypy --package x', 'npm test -- --watch=false', 'npm ls --all',
        'npm run lint --silent', 'yarn test --coverage',
        'pnpm build', 'objdump -d a.out', 'sysctl kernel.hostname', 'mount', 'ctest --output-on-failure',
        'gh pr view 1 --json title', 'vitest run --coverage',
        'arp -a', 'unzip -lq a.zip', 'tar tzf a.tar.gz',
    ],
)  # fmt: skip
def test_the_options_of_every_day_do_not(command):
    assert decision(command, *unasked(command.split()[0])) == 'allow'


def test_what_the_rule_names_is_what_somebody_wrote_down():
    assert decision('ip addr add 1.2.3.4 dev x', *unasked('ip addr add')) == 'allow'
    assert decision('tar cf ./a.tar f', *unasked('tar cf')) == 'allow'
    assert decision('npm i x', *unasked('npm i')) == 'allow'


@pytest.mark.parametrize(
    ('pattern', 'command'),
    [
        ('coverage run -m pytest', 'coverage run -m pytest -q tests'), ('poetry run pytest', 'poetry run pytest -q'),
        ('hatch run test', 'hatch run test -v'),
        ('npx prettier --check', 'npx prettier --check .'), ('uv run ruff check', 'uv run ruff check src'),
        ('npx -y jest', 'npx -y jest --ci'),
        ('uv run python -m pytest', 'uv run python -m pytest -q'),
        ('docker compose exec web pytest', 'docker compose exec web pytest -q'),
        ('coverage', 'coverage report -m'), ('python -m pytest -p x', 'python -m pytest -p x -q'),
    ],
)  # fmt: skip
def test_what_a_runner_is_given_every_day_is_allowed(pattern, command):
    assert decision(command, *unasked(pattern)) == 'allow'

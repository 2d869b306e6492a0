"""What reaches a program, a file or a branch by another way than the rules name, and honest twins of it."""

import pytest
from tool_approval.tools.shell import ShellTool

from tests.tables import table

from .parts import OPEN, blocked, decision, unasked


@pytest.mark.parametrize(
    'command',
    [
        'cd evil && bash scripts/test.sh', '(cd evil; bash scripts/test.sh)', 'cd evil; timeout 5 bash scripts/test.sh',
        'cd evil; exec bash scripts/test.sh', 'find evil -execdir bash scripts/test.sh \\;',
    ],
)  # fmt: skip
def test_a_rule_for_a_script_holds_where_the_rule_was_made(command):
    rules = unasked('bash scripts/test.sh', 'find')

    assert decision('bash scripts/test.sh -v', *rules) == 'allow'
    assert decision(command, *rules) == 'ask'


@table(
    'command',
    [
        "npm x -- perl -e 'unlink \"v\"'",         "bwrap --bind / / sh -c \"r''m v\"", "uv run python -c 'x'",
        "poetry run bash -xc 'x'",
        "bundle exec ruby -e 'x'", "direnv exec . sh -c 'x'", "kubectl debug p -- sh -c 'x'",
        "nobody-knows-it sh -xc 'x'",
        "nobody-knows-it python3 -c 'x'", "conda run python -c 'x'", "npm exec -- node -e 'x'", 'conda python -c x',
        'ln -s /bin/r? y; ./y v', 'cp /bin/r[m] y', 'cp /b*n/rm* y', 'ln -s /bin/{r,x}m y', 'cp {/bin/rm,y}',
        'cp /{bin,x}/r? y', "pnpm create x -- node -e 'x'", "npm create x -- perl -e 'x'",
    ],
)  # fmt: skip
def test_code_behind_a_program_nobody_knows_is_asked_about_where_something_is_blocked(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'ask'


@table(
    'command',
    [
        'which bash', 'apt-cache show python3', 'npm install node', 'cp a/bash b', 'chmod +x tools/python',
        'docker pull ruby',
        'git log -- bash', 'npm x -- eslint src', 'uv run python a.py', 'cp src/* out', 'cp /usr/share/r? out',
        'conda install python -c conda-forge', 'ps -C node -o pid',
        'apt list python3 -a', 'docker pull python -q', 'brew info node --json', 'gh search code node --language js',
    ],
)  # fmt: skip
def test_the_name_of_a_shell_or_an_interpreter_alone_is_no_code(command):
    assert decision(command, *blocked('rm'), default=OPEN) == 'allow'


@table(
    ('rule', 'command'),
    [
        ('rm', 'time A=1 rm v'), ('rm', 'exec -a foo rm v'), ('rm', 'env -i -C / rm v'), ('rm', 'env -iC / A=1 rm v'),
        ('rm', 'ssh h -t rm v'),
        ('rm', "flock f -c 'rm v'"), ('rm', "flock -n f --command 'rm v'"), ('rm', "nix-shell --run 'rm v'"),
        ('rm', 'uname26 rm v'),
        ('rm', 'systemd-inhibit rm v'), ('rm', 'ssh-agent -t 5 rm v'), ('rm', 'faketime now rm v'),
        ('rm', "ssh-agent bash -c \"r''m v\""), ('rm', "x86_64 bash -c \"r''m v\""),
        ('rm', "perf stat sh -c \"r''m v\""),
        ('rm', "logsave /dev/null sh -c \"r''m v\""), ('rm', "time A=1 sh -c \"r''m v\""),
        ('rm -rf /', 'rm -rf //'), ('rm -rf /', 'rm -rf /.'), ('rm -rf /', 'rm -rf /../'),
        ('rm -rf /etc', 'rm -rf /usr/../etc/'),
        ('pip uninstall', 'python -Im pip uninstall x'), ('pip uninstall', 'python -Bm pip uninstall x'),
        ('apt remove', 'apt-get remove x'), ('apt remove', 'aptitude remove x'), ('terraform destroy', 'tofu destroy'),
    ],
)  # fmt: skip
def test_what_is_blocked_is_blocked_by_any_name(rule, command):
    assert decision(command, *blocked(rule), default=OPEN) == 'block'


@pytest.mark.parametrize('command', ['git t', 'git --no-pager t', 'git ci -m x', 'git pus', 'git -P "$x"'])
def test_what_is_no_command_of_git_may_be_an_alias(command):
    assert decision(command, default=OPEN) == 'ask'
    assert decision(command, *unasked('git')) == 'ask'


@pytest.mark.parametrize('command', ['git', 'git --version', 'git whatchanged', 'git --no-pager log', 'git ci'])
def test_a_command_of_git_or_one_that_a_rule_names_is_none(command):
    assert decision(command, *unasked('git ci'), default=OPEN) == 'allow'


def test_a_path_that_is_blocked_is_no_other_path():
    assert decision('rm -rf /x', *blocked('rm -rf /'), default=OPEN) == 'allow'
    assert decision('rm -rf .', *blocked('rm -rf /'), default=OPEN) == 'allow'
    assert decision('flock f ls', *blocked('rm'), *unasked('flock'), default=OPEN) == 'allow'


@table(
    ('rule', 'command'),
    [
        ('git fetch', "git fetch --prune origin 'refs/heads/*:refs/heads/*'"),
        ('git fetch', "git fetch -p origin '*:*'"),
        ('git fetch', 'git fetch -f origin main:main'), ('git fetch', 'git fetch --force origin main:main'),
        ('git fetch', 'echo +a:a | git fetch --stdin origin'),
        ('git fetch', "git fetch --refmap='+refs/heads/*:refs/heads/*' origin main"),
        ('git pull', 'git pull -f origin main:main'),
        ('make test', 'make test deploy'), ('make test', 'make test -j4 deploy'), ('make test', 'make test "$x"'),
        ('ninja all', 'ninja all install'),
        ('hg status', 'hg status --config extensions.e=evil.py'), ('hg log', "hg log --config 'alias.log=!touch x'"),
        ('hg status', 'hg status -R evil'), ('hg status', 'hg status --cwd evil'),
        ('cmake --build build', 'cmake --build build -- -f ../evil.mk'),
        ('cmake --build build', 'cmake --build build -- SHELL=./x'),
        ('svn diff', 'svn diff --diff-cmd=./evil'), ('dotnet build', "dotnet build -p:PreBuildEvent='touch x'"),
        ('dotnet test', 'dotnet test /p:X=y'), ('bazel build', 'bazel build --workspace_status_command=./evil //a'),
        ('bazel test', 'bazel test --run_under=./evil //a'), ('rpm -q', "rpm -q --pipe 'touch x' a"),
        ('rpm -qa', "rpm -qa --eval '%(x)'"),
        ('kustomize build', 'kustomize build --enable-exec --enable-alpha-plugins'),
        ('kubectl kustomize', 'kubectl kustomize --helm-command=./x'),
        ('kubectl get', 'kubectl get pods --log-file=x'), ('zig build', 'zig build --build-file evil.zig'),
        ('nginx -t', 'nginx -t -c evil'),
        ('ansible-playbook --check', 'ansible-playbook --check --vault-password-file=./evil a.yml'),
        ('tshark', 'tshark -X lua_script:x'),
        ('composer validate', 'composer validate -d evil'), ('stack build', 'stack build --stack-yaml=evil'),
        ('deno', "deno eval 'x'"),
        ('tsx', "tsx -e 'x'"), ('ts-node', "ts-node -p 'x'"), ('ipython', "ipython -c 'x'"),
        ('apt-cache search', 'apt-cache search x -o Dir::Cache::pkgcache=y'),
        ('terraform plan', 'terraform plan -generate-config-out=x.tf'),
        ('tofu plan', 'tofu plan -out=x'), ('biome check', 'biome check --write'),
        ('tsc --noEmit', 'tsc --noEmit --incremental'),
        ('sqlite3', "sqlite3 :memory: \"CREATE VIRTUAL TABLE temp.z USING zipfile('x.zip')\""),
        ('openssl', 'openssl req -x509 -newkey rsa:2048'),
        ('ruff check', 'ruff check --add-ignore'), ('deno lint', 'deno lint --fix'), ('bun test', 'bun test -u'),
        ('go test', 'go test -mod mod'),
        ('go test', 'go test --mod=mod'), ('go build', 'go build -debug-trace=x'), ('oxlint', 'oxlint --fix'),
        ('semgrep', 'semgrep --autofix'),
        ('autoflake', 'autoflake -i a.py'), ('docformatter', 'docformatter --in-place a.py'),
        ('pip-audit', 'pip-audit --fix'),
        ('phpunit', 'phpunit --log-junit x'), ('playwright test', 'playwright test --update-snapshots'),
        ('pytest', 'pytest --force-regen'),
        ('fuser', 'fuser -k 80/tcp'), ('djlint', 'djlint --reformat a.html'),
        ('markdownlint', 'markdownlint --fix a.md'),
    ],
)  # fmt: skip
def test_an_option_or_an_argument_that_runs_writes_or_deletes_is_asked_about(rule, command):
    assert decision(command, *unasked(rule, 'echo')) == 'ask'


@table(
    ('rule', 'command'),
    [
        ('git fetch', 'git fetch --all --prune'), ('git fetch', 'git fetch -p origin'),
        ('git fetch', 'git fetch --prune https://example.com/a'),
        ('git fetch', "git fetch -p origin '+refs/heads/*:refs/remotes/origin/*'"), ('git pull', 'git pull --ff-only'),
        ('make test', 'make test -j 4 -k'), ('make', 'make test lint'), ('hg status', 'hg status -m'),
        ('cmake --build build', 'cmake --build build -- -j 4'), ('dotnet build', 'dotnet build -c Release'),
        ('rpm -qa', 'rpm -qa --last'),
        ('bazel test', 'bazel test //a:all'), ('terraform plan', 'terraform plan -no-color'),
        ('go test', 'go test -mod=readonly ./...'),
        ('go test', 'go test -mod readonly ./...'), ('deno test', 'deno test a.ts'),
        ('apt-cache search', 'apt-cache search --names-only x'),
        ('tsc --noEmit', 'tsc --noEmit'), ('kubectl get', 'kubectl get pods -n logs'), ('tsx', 'tsx a.ts'),
        ('openssl', 'openssl x509 -in a -text'),
        ('find', "find . -name '*.py' -exec sed -n 1,5p {} \\;"), ('awk', "awk '/foo/ {print FILENAME\": \"$0}' *.txt"),
        ('awk', 'awk -F: \'{print $1}\' "$f"'),
    ],
)  # fmt: skip
def test_the_honest_twin_is_not(rule, command):
    assert decision(command, *unasked(rule, 'sed -n')) == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        'find $x -exec sed -n p {} \\;', "find -name '*.py' -exec sed -n p -f{} \\;", 'find . -exec sed -n -{} \\;',
        'awk $x *.txt', "awk '{print}' f -f evil", 'find @x -exec sed -n {} \\;', "find '+x' -exec sed -n {} \\;",
        'awk -f *.txt',
    ],
)  # fmt: skip
def test_what_may_still_be_an_option_is_asked_about(command):
    assert decision(command, *unasked('find', 'sed -n', 'awk')) == 'ask'


ROOTED = ('awk', 'sqlite3', 'jq', 'yq', 'curl', 'find', 'stat', 'xxd', 'nl', 'cat')


def in_output(tmp_path, command, root='output'):
    (tmp_path / 'output').mkdir()
    rules = [{'pattern': name, 'approval': False, 'sandbox_paths': ['output']} for name in ROOTED]
    return ShellTool({'rules': rules}, cwd=tmp_path, roots={'output': str(tmp_path / root)}).explain(command).decision


@pytest.mark.parametrize(
    ('root', 'command'),
    [
        ('output', 'awk \'BEGIN{x="y/../output/"; ARGV[1]="/etc/passwd"} 1\' output/a'),
        ('output', "sqlite3 output/a.db \"select 'x/../output/', readfile('/etc/passwd')\""),
        ('.', 'awk \'BEGIN{ARGV[1]="/etc/passwd"} 1\' a'),
        ('.', 'awk \'BEGIN{ARGV[1]=sprintf("%cetc%cpasswd",47,47)} 1\' a'),
        ('.', 'jq -n \'import "sec" as $a {search:"/tmp"}; $a\''), ('.', 'sqlite3 a.db "select readfile(x) from y"'),
        ('.', 'sqlite3 a.db "select * from fsdir(1)"'), ('.', 'yq \'load("/etc/passwd")\' a'),
        ('.', 'curl file:///etc/passwd'),
    ],
)  # fmt: skip
def test_code_and_addresses_are_no_paths_in_a_root(tmp_path, root, command):
    assert in_output(tmp_path, command, root) == 'ask'


@pytest.mark.parametrize(
    'command',
    [
        "find output -printf '%p\\n'", 'find output -newermt 2024-01-01', 'stat -c %s output/a', 'xxd -l 16 output/a',
        'nl -ba output/a',
        "awk '{print $1}' output/a", 'cat output/a', "cat 'output/(group)/a.tsx'", "jq '.a | .b' output/a",
    ],
)  # fmt: skip
def test_values_of_readers_are_no_paths_outside_of_it(tmp_path, command):
    assert in_output(tmp_path, command) == 'allow'

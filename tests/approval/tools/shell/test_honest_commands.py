"""Commands of every day that are certainly harmless, each class with its twins that stay asked about."""

import shutil
import subprocess

import pytest

from tests.tables import table

from .parts import OPEN, blocked, decision, judge, unasked


@table(
    'command',
    [
        'git log --grep=rm', 'git log --grep rm', 'git log -S "rm -rf"', 'git log --oneline -- rm',
        'git diff -- scripts/rm',
        'git --no-pager show HEAD:rm', 'git commit -m "rm old"', 'git branch --list rm', 'git stash push -m "rm x"',
        'git add rm',
        'pytest -k rm', 'python -m pytest -k rm', 'find . -name rm', 'rg "rm -rf"', 'rg rm src', '[ -f rm ]',
        'test -f rm && ls',
        "sed -n '/rm/p' f", "awk '/rm/ {print}' f", 'sort rm', 'printf "%s\n" rm', 'man rm', 'date -d rm', 'tree rm',
        'fd rm', 'command -v rm', 'command -V rm', 'cd rm',
    ],
)  # fmt: skip
def test_the_name_of_a_blocked_program_is_data_to_what_runs_nothing(command):
    rules = [*blocked('rm'), *unasked('python -m pytest')]

    assert decision(command, *rules, default=OPEN) == 'allow'


@table(
    ('pattern', 'command'),
    [
        ('git', 'git rm f'), ('git', 'git bisect run rm f'), ('git', 'git foo rm'), ('git', 'git grep -Orm x'),
        ('git', 'git $x rm'),
        ('git', 'git -c alias.x=!rm log'), ('git', 'git difftool -x rm'), ('git', 'git log --ext-diff rm'),
        ('git', 'git help rm'),
        ('git', 'git rebase -x "rm f"'), ('git grep -O', 'git grep -O rm'), ('docker', 'docker rm x'),
        ('make', 'make rm'), ('foo', 'foo rm'),
        ('fd -x', 'fd -x rm'), ('fd', 'fd -x rm'), ('rg --pre', 'rg --pre rm x'),
        ('sort', 'sort --compress-program=rm f'),
        ('sort --compress-program', 'sort --compress-program rm f'), ('find', 'find . -exec rm {} +'),
        ('find', 'find . -exec foo rm ";"'),
        ('sed', 'sed "1e rm f" f'), ('sed -i', 'sed -i "1e rm f" f'), ('awk', """awk 'BEGIN{system("rm f")}'"""),
        ('man -P', 'man -P rm x'),
        ('xargs', 'xargs foo rm'), ('./find', './find rm'), ('printf', 'printf -v rm'), ('pytest', 'pytest -p rm'),
        ('command', 'command -p rm'), ('command', 'command -pv rm'),
        ('python', 'python -m foo rm'), ('python -m', 'python -m foo rm'),
        ('python -m pytest', 'python -m pytest -p rm'),
    ],
)  # fmt: skip
def test_program_that_may_run_a_blocked_name_still_asks(pattern, command):
    assert decision(command, *unasked(pattern), *blocked('rm'), default=OPEN) in ('ask', 'block')


@pytest.mark.parametrize('text', ['100%%', '%.1f%%', '%s: %d%%', '%%%%', 'a%%n', '%%%s', '%(%Y)T%%'])
def test_a_doubled_percent_sign_prints_one(text):
    assert decision(f"printf '{text}\\n' 1", *unasked('printf')) == 'allow'


@pytest.mark.parametrize(
    'text', ['%n', '%%%n', '%5%n', '%-%%n', '%5%%n', '%*%%n', '%h%%n', '%ln', '%(%%n', '%%%%%n', '%5n', '%.%%n']
)
def test_a_percent_sign_that_is_left_over_may_set_a_variable(text):
    assert decision(f"printf '{text}' x", *unasked('printf')) == 'ask'


@table(
    'command',
    [
        'cd . && git status', 'cd ./ && make', 'cd /here && make', 'cd /here/; make', 'git status && cd docs && ls',
        'make; cd docs; cat a', 'cd docs && find . -name "*.md"', 'cd docs && rg a | sort | uniq',
        "cd docs && sed -n '1p' a",
        "cd docs && awk '{print $1}' a", 'cd docs && tree && date', 'cd docs && [ -f a ] && printf "%s" a',
        'echo a >&2 && cd docs',
        'cd "$x" && find .', 'cd -- "$x" && ls', 'cd "$(pwd)" && ls',
    ],
)  # fmt: skip
def test_change_of_directory_affects_the_commands_after_it(command):
    rules = unasked(
        'pwd',
        'git status',
        'make',
        'ls',
        'cat',
        'find',
        'rg',
        'sort',
        'uniq',
        'sed',
        'awk',
        'tree',
        'date',
        'printf',
        'echo',
    )

    assert decision(command, *rules) == 'allow'


@table(
    'command',
    [
        'cd docs && git status', 'cd /here/docs && make', 'cd /here/../x && make', 'cd . && cd docs && make',
        'cd "$x" && make',
        'cd -P . && make', 'cd /her && make', 'cd "" && make', 'pushd . && make', 'cd docs && ./find .',
        'cd docs && find . -delete',
        'cd docs; for i in a b; do make; done', 'for i in a b; do make; cd docs; done', 'while make; do cd docs; done',
        'until make; do cd docs; done', 'git status && cd docs && git status', 'eval "cd docs"; make',
        'command cd docs; make',
        'cd docs && sort -o x f', "cd docs && sed -i 's/a/b/' f", 'bash -c "cd docs; make"', 'trap make EXIT; cd docs',
        'cd docs && cd /here && make',
    ],
)  # fmt: skip
def test_program_that_reads_code_or_settings_from_another_directory_asks(command):
    rules = unasked('git status', 'make', 'find', './find', 'sort', 'sed', 'file', 'pushd', 'trap')

    assert decision(command, *rules) == 'ask'


@table(
    ('pattern', 'command'),
    [
        ('git log', 'git log -- "$f"'), ('git log', 'git log -p --oneline -- $f *.py'),
        ('git diff', 'git diff HEAD~1 -- *.py'),
        ('git stash', 'git stash -m "$m"'), ('git diff', 'git diff HEAD -- --output=p'),
        ('git show', 'git --no-pager show HEAD -- "$f"'), ('git add', 'git add -- "$f"'),
        ('git grep', 'git grep -n a -- "$f"'),
        ('git status', 'git status --short -- "$f"'), ('git commit', 'git commit -m "$m"'),
        ('git commit', 'git commit -am "$m"'),
        ('git commit', 'git commit --message="$m" --author "$a" -- "$f"'),
        ('git stash push', 'git stash push -m "$m" -- "$f"'),
        ('git log', 'git log --author="$a" -n "$n" --since "$d" -S "$s"'),
        ('find', 'find . -type f -name "$x" -o -path "$y"'),
        ('find', 'find src lib ! -name "*$x*" -print'), ('date', 'date -d "$d" +%F'), ('date', 'date -u --date="$d"'),
        ('git commit', "git commit -m \"$(cat <<'EOF'\nfix $x\n\nbody\nEOF\n)\""),
        ('git grep', 'git grep -e "$x" -- "$f"'), ('sort', 'sort -k "$x" f'),
        ('sort', 'sort -r -- "$f"'), ('sort', 'sort -rk2 -t , -u -- $f'), ('curl', 'curl -s --max-time 5 -- "$url"'),
        ('rg', 'rg -n -- "$x" src'),
        ('rg', 'rg -g "$g" -e "$x" src'), ('file', 'file -b -- "$f"'), ('date', 'date -r "$f"'),
    ],
)  # fmt: skip
def test_what_is_not_known_may_be_the_value_of_an_option_or_stand_behind_them(pattern, command):
    assert decision(command, *unasked(pattern, 'cat')) == 'allow'


@table(
    ('pattern', 'command'),
    [
        ('git log', 'git log $x -- f'), ('git log', 'git log --author -- "$x"'),
        ('git log', 'git log --decorate-refs -- "$x"'),
        ('git log', 'git log --format="$x"'), ('git log', 'git log --pretty="$x"'),
        ('git log', 'git log --format "$x"'),
        ('git log', 'git log --output="$x"'), ('git log', 'git log --output -S "$x"'), ('git log', 'git log -S $x'),
        ('git log', 'git log --author=$x'), ('git log', 'git log --author="$@"'), ('git commit', 'git commit -m "$@"'),
        ('git commit', 'git commit -m "${a[@]}"'), ('git commit', 'git commit -m $m'),
        ('git commit', 'git commit -F "$m"'),
        ('git commit', 'git commit -C -m "$m"'), ('git commit', 'git commit -m -- "$x"'),
        ('git fetch', 'git fetch -- "$x"'),
        ('git push', 'git push -- "$x"'), ('git branch', 'git branch -- "$x"'),
        ('git $x', 'git $x -m "$m"'), ('git grep', 'git grep -e -- "$x"'),
        ('find', 'find "$x" -name a'), ('find', 'find . -name $x'), ('find', 'find . -newer -name "$x"'),
        ('find', 'find . -name "$x" -delete'),
        ('find', 'find . -newer 0<f -name "$x"'), ('find', 'find . -newer {d}<f -name "$x"'),
        ('find', 'find . -D -name "$x"'),
        ('find', 'find . -- "$x"'), ('find', 'find . -exec "$x" {} ";"'), ('date', 'date -s "$d"'),
        ('date', 'date -r -d "$d"'),
        ('date', 'date "$d"'), ('date', 'date -- "$d"'), ('git commit', 'git commit -m "$(touch x)"'),
        ('sort', 'sort -k $x'),
        ('sort', 'sort --random-source -- "$f"'), ('sort', 'sort -ro -- "$f"'), ('sort', 'sort -k -- "$f"'),
        ('curl', 'curl -s -H -- "$u"'),
        ('curl', 'curl -so "$f" -- a'), ('rg', 'rg --pre -- "$x"'), ('file', 'file -m -- "$f"'),
        ('pytest', 'pytest -q -- "$f"'), ('sort', 'sort "$f" --'),
        ('pytest', 'pytest -p "$x"'), ('curl', 'curl -d "$x" -- a'),
    ],
)  # fmt: skip
def test_what_is_not_known_stays_asked_about_where_it_may_be_an_option(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'


EXPANSIONS = [
    '${x:-a}', '${x-a b}', '${x:+a}', '${x:-}', '${f%.py}', '${f%%.*}', '${x#*/}', '${x##*/}', '${x//a/b}', '${x/a/}',
    '${x:0:3}',
    '${x: -3}', '${x:1}', '${a[0]}', '${a[@]}', '${a[*]}', '${#a[@]}', '${1:-a}', '${x^^}', '${x,}',
]  # fmt: skip


@table('expansion', EXPANSIONS)
@table('place', ['echo {}', 'echo "{}"', 'echo a"b{}c"', 'x={}; echo "$x"', 'cat <<E\n{}\nE'])
def test_expansion_with_plain_text_runs_nothing(expansion, place):
    assert decision(place.format(expansion), *unasked('echo', 'cat')) == 'allow'


@table(
    'expansion',
    [
        '${x:=a}', '${x=a}', '${x:?a}', '${x@P}', '${x@Q}', '${!x}', '${!x*}', '${a[x]}', '${a[$(touch x)]}',
        '${a[0+1]}', '${a[-1]}',
        '${x:-$(touch x)}', '${x:-`touch x`}', '${x:-$y}', '${x:-"a"}', "${x:-'a'}", '${x:-\\a}', '${x:-~}', '${x:-{a}',
        '${x:y}', '${x:a[0]}',
        '${x:0:y}', '${x//a/$(touch x)}', '${x%$y}', '${#x:-a}', '${x:-<(touch x)}', '${@:1}', '${x:-a[0]}', '${x/a/&}',
        '${x^a}', '${x:- $y}',
    ],
)  # fmt: skip
def test_expansion_with_more_than_plain_text_asks(expansion):
    assert decision(f'echo {expansion}', *unasked('echo')) == 'ask'
    assert decision(f'echo "{expansion}"', *unasked('echo')) == 'ask'


@pytest.mark.parametrize(
    'command', ['${x:-rm} f', 'sort ${x:-a}', 'sort a${x:-b}', 'sort "${x:-a}"', 'sort a"${a[@]}"', 'ls > ${x:-a}']
)
def test_what_an_expansion_becomes_is_not_known(command):
    assert decision(command, *unasked('sort', 'ls')) == 'ask'


@pytest.mark.parametrize(
    'program',
    ['{print $1 "|" $2}', '{print $1 " -> " $2}', '{printf "%s|%s>\\n", $1, $2}', 'BEGIN{print "a\\"|b"}',
        '{print "a/b|" $1}', '$1 > 2 {print "x"}',
     '/foo/ {print $1" > "$2}', '{print; if ($1>5) exit}', '{print $1; n += $2 > 3} END{print n}', '!/a|b/{print "|"}'],
)  # fmt: skip
def test_a_text_of_awk_may_hold_what_would_write_outside_of_it(program):
    assert decision(f"awk '{program}' f", *unasked('awk')) == 'allow'


@table(
    'program',
    ['{print "a" > "p"}', '{print "a" | "sh"}', '{print "a" |& "sh"}', '/"/ {print > "f"}', '/"/{print "a" > "p"}',
        '{print "a\\"" > "p"}',
     '# "\n{print > "p"}', '{x = 1 / 2; print "a" > "p"}', '{print "\\\\" > "p"}', '{print "system"}',
     '{f = "a"; @f("|")}', '/\\"/{print > "p"}',
     '{print "a\n" > "p"}', '{print /"/ > "p"}',
     '/a/ {print > "p"}', '/[/"]/ {print ">"} {print > "p"}', '{print /;/ > "p"}', '{print "a",\n "b" > "p"}',
     '{print; print > "p"}', '{x = 1; print "a;" | "sh"}',
     '# ;\n{print /;/ > "p"}', '/\\//{print "a" > "p"}'],
)  # fmt: skip
def test_a_program_of_awk_that_writes_beside_a_text_is_asked_about(program):
    assert decision(f"awk '{program}' f", *unasked('awk')) == 'ask'


@pytest.mark.parametrize(
    ('pattern', 'command'),
    [
        ('python -m pytest', 'python -m pytest -m "not slow" -W error'), ('python -m pytest', 'python3 -m pytest -q'),
        ('python', 'python script.py -c cfg'),
        ('python script.py', 'python script.py -m a -i'), ('node', 'node script.js -p 3000'), ('php', 'php a.php -r x'),
        ('node', 'node ./a -e prod'),
        ('ruby', 'ruby x.rb -e a'), ('python -m ruff check', 'python -m ruff check -q'),
    ],
)  # fmt: skip
def test_options_behind_a_script_or_a_module_are_not_the_interpreters(pattern, command):
    rules = unasked(pattern, 'python3 -m pytest')

    assert decision(command, *rules) == 'allow'


@table(
    ('pattern', 'command'),
    [
        ('python', 'python -m pytest -m slow'), ('python -m', 'python -m pytest -m slow'),
        ('python -m pytest', 'python -m pytest -p x'),
        ('python -m pytest', 'python -m pytest -c x'), ('python -m pytest', 'python -m pytest --rootdir x'),
        ('python -m foo', 'python -m foo -c x'),
        ('python', 'python -c x a.py'), ('python', 'python -i a.py -c'), ('python', 'python - -c x'),
        ('python', 'python "$x" -c x'),
        ('node', 'node --foo a.js -e x'), ('node', 'node -r x a.js'), ('node', 'node inspect -e x'),
        ('python', 'python a.py "$x"'),
        ('python -m ruff', 'python -m ruff check --fix'), ('python', 'python'),
    ],
)  # fmt: skip
def test_options_of_the_interpreter_and_of_a_module_stay_asked_about(pattern, command):
    assert decision(command, *unasked(pattern)) == 'ask'


@table(
    'command',
    [
        'pytest -W error', 'pytest -W ignore::DeprecationWarning', 'pytest -Werror', 'pytest --cov-report=',
        'curl -o /dev/null http://x',
        'curl -so /dev/null -w "%{http_code}" http://x', 'curl -sw "%{http_code}\n" http://x',
        'curl --write-out "100%% %{time_total}" http://x',
        'curl --output /dev/null http://x', 'wget -qO- http://x', 'wget -O - http://x', 'tar --list -f a.tar',
        'top -bn1', 'top -b -n 1',
        'bash -n a.sh', 'sh -n ./a.sh', 'ip -br a', 'pnpm test -- --run', 'tsc --noEmit -p tsconfig.json', 'tsc -p .',
        'test a -eq b',
        'kubectl logs -f x', 'mypy --cache-dir=/dev/null src', 'mypy --cache-dir /dev/null src', 'sort -S 1G a',
        'curl --head http://x',
        'curl --header "Accept: a" http://x', 'prettier --check --cache .', 'git stash pop --index',
        'git stash apply --index', 'crontab -l', 'tmux ls',
        'sqlite3 ./a.db "select 1"', 'sqlite3 ../a.db .tables', 'sqlite3 a.db ".schema t"',
        'sqlite3 -batch a.db "select 1"', 'hostname -f', 'ifconfig eth0',
        'route -n',
    ],
)  # fmt: skip
def test_a_value_that_does_no_harm_is_allowed(command):
    assert decision(command, *unasked(command.split()[0])) == 'allow'


@table(
    'command',
    [
        'pytest -W error::a.B', 'pytest -W error::mod.Warning:x', 'pytest -W "ignore:::a.b"',
        'pytest --cov-report=html', 'curl -o x http://x',
        'curl -o /dev/null -o x http://x', 'curl -o /dev/null/../x http://x', 'curl -w @f http://x',
        'curl -w "%output{x}" http://x',
        'curl -w "a%output{x}" http://x', 'curl -w "%%%output{x}" http://x', 'curl -w "%{a}%output{x}" http://x',
        'curl -w "$x" http://x',
        'curl -w " @f" http://x', 'curl -w%output{x} http://x', 'curl -w@f http://x', 'curl -Oo /dev/null http://x',
        'curl -ow /dev/null',
        'curl -w "" @f', 'curl -o /dev/null$x http://x', 'wget -qO x http://x', 'wget -O-x http://x',
        'tar --listed-incremental=x -f a',
        'bash -n', 'bash -n a.sh b', 'bash -n -c x', 'bash -n $x', 'bash -n -- a', 'bash -n < a.sh', 'zsh -n a.sh',
        'bash -nc x', 'ip -b f',
        'ip -br -b f', 'tsc -p ../x', 'kubectl apply -f x', 'kubectl -n logs apply -f x', 'kubectl logs -s x',
        'npm test --workspace=a', 'ctest --test-dir build',
        'mypy --cache-dir=/dev/null/x src', 'mypy --cache-dir x src', 'crontab', 'crontab -l -e', 'crontab f',
        'crontab "$x"', 'tmux ls \\; kill-server', 'tmux',
        'sqlite3 a.db ".schema t\n.shell x"', 'sqlite3 a.db .read', 'sqlite3 a.db ".output x"', 'sqlite3 a.db .shell',
        'sqlite3 a.db "$x"',
    ],
)  # fmt: skip
def test_any_other_value_is_asked_about(command):
    assert decision(command, *unasked(command.split()[0])) == 'ask'


@pytest.mark.parametrize(
    'command',
    ['[ "$(wc -l < f)" -gt 10 ]', 'test "$x" -eq 1', '[ a -eq "$x" ]', '[ ! "$x" -lt 3 ]', '[ f -nt "$x" ]',
        'test 1 -lt 2 -a 3 -lt x', '[[ 1 -eq 1 ]]',
     '[[ $x =~ ^[0-9]+$ ]]', '[[ $x =~ ^a\\.b{2}$ && -f a ]]', '[ -v x ]', 'test -v x', '[[ -v x ]]'],
)  # fmt: skip
def test_numbers_are_compared_without_running_anything(command):
    assert decision(command, *unasked('wc')) == 'allow'


@pytest.mark.parametrize(
    'command',
    ['[[ "$x" -gt 1 ]]', '[[ a -eq 1 ]]', '[ -v a -eq 1 ]', '[ -v "$x" ]', 'test -v', '[[ $x =~ $(touch x) ]]',
        '[[ $x =~ (a) ]]', '[ $x -gt 1 ]', '[ "$x" -gt -v ]', 'test "$a" "$op" 1', '[ -v "a[0]" ]',
        'test "$x" -eq 1 -o "$y"'],
)  # fmt: skip
def test_test_command_with_an_evaluated_word_or_a_possible_operator_asks(command):
    assert decision(command) == 'ask'


@pytest.mark.parametrize('shell', ['bash', 'dash'])
@pytest.mark.parametrize('operator', ['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-nt', '-ot', '-ef'])
def test_a_test_evaluates_no_subscript_as_the_shell_itself_says(shell, operator, tmp_path):
    if shutil.which(shell) is None:  # pragma: no cover - the shells of this platform
        pytest.skip(f'there is no {shell}')
    script = f"""x='a[$(touch ran)]'; [ "$x" {operator} 1 ]; test 1 {operator} "$x"; [ ! "$x" {operator} "$x" ]"""

    subprocess.run([shell, '-c', script], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)

    assert list(tmp_path.iterdir()) == []


def test_bash_reads_a_script_without_running_it(tmp_path):
    (tmp_path / 'a.sh').write_text('touch ran\nx=$(touch ran)\n[[ -v "a[$(touch ran)]" ]]\nset +n\ntouch ran\n')

    subprocess.run(['bash', '-n', 'a.sh'], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)

    assert [each.name for each in tmp_path.iterdir()] == ['a.sh']


@pytest.mark.parametrize(
    'command',
    ['while read -r line; do echo "$line"; done < f', 'while IFS= read -r l; do echo "$l"; done < f',
        'cat f | while read -r a b; do echo "$a"; done',
     'IFS=: read -r a b <<< x:y', 'read -rs x', 'read -p "name: " x', "while IFS= read -r -d '' f; do echo $f; done"],
)  # fmt: skip
def test_a_line_may_be_read_into_a_variable_of_ones_own(command):
    assert decision(command, *unasked('echo', 'cat')) == 'allow'


@table(
    'command',
    ['read PATH', 'read http_proxy', "read 'a[$(touch x)]'", 'read a[0]', 'read "$x"', 'read -a x',
        'read -p "$(touch x)" x', 'read', 'read -r',
     'IFS=, read x; $x', 'read -r x; sort $x', 'IFS=/ ls', 'IFS=/; read x', 'IFS=/ \\read BASH_ENV', 'read -e x',
     'read -u 3 x', 'read -r x; eval "$x"',
     'IFS=/ command ls', 'read -rp a x'],
)  # fmt: skip
def test_other_variables_and_what_is_done_with_them_are_asked_about(command):
    assert decision(command, *unasked('ls', 'sort')) == 'ask'


SANDBOXED = ('tac', 'pytest', 'python -m pytest', 'cat', 'head', 'tail', 'grep', 'wc', 'sort', 'md5sum')


def sandboxed(command):
    rules = [{'pattern': pattern, 'approval': False, 'sandbox_paths': ['out']} for pattern in SANDBOXED]
    return judge(*rules, roots={'out': '/here/out'}).explain(command).decision


@table(
    'command',
    [
        'pytest -xk foo out', 'grep -- foo out/a', 'head -n5x out/a', 'grep -d skip foo out/a',
        'pytest -k foo out', 'pytest out -m slow', 'pytest -n 4 out', 'pytest -n auto out', 'pytest --tb short out',
        'pytest --maxfail 1 out',
        'pytest --durations 5 out', 'python -m pytest -k "a and not b" out', 'head -n 20 out/a', 'head -20 out/a',
        'tail -n +5 out/a', 'tail -n 5 out/a',
        'head -c 1k out/a', 'grep foo out/a', 'grep -rn /etc out', 'grep -A 3 foo out/a', 'grep -3 foo out/a',
        'grep -e /x -e -y out/a', 'grep -n a out/a -B 2',
        'cat out/a | head', 'cat out/a | grep foo | sort -u | wc -l', 'wc -l < out/a', 'wc -l<out/a',
        'grep -A3 foo out/a', 'head -n5 out/a', 'grep --include="*.py" -rn foo out',
        'grep -rn --exclude-dir=.git foo out', 'cat out/a > /dev/null', 'cat out/a 2>/dev/null', 'cat <<< a',
        'cat <<E\na\nE', 'cat out/a | (head)', 'cat out/a | timeout 5 head', "cat out/a | bash -c 'head'",
        'bash -c "cat out/a | head"', 'grep --color=never -n foo out/a', 'head < /dev/null',
    ],
)  # fmt: skip
def test_values_patterns_and_pipes_are_no_paths(command):
    assert sandboxed(command) == 'allow'


@table(
    'command',
    [
        'pytest -k foo', 'pytest -k @f out', 'pytest -k /etc', 'pytest -n /etc out', 'pytest -m slow /etc',
        'pytest -- -k /etc', 'pytest --max 1 out',
        'pytest -k out', 'pytest -k "$x" out', 'pytest --rootdir -k out', 'pytest --tb /etc out',
        'cat out/a | pytest', 'pytest < out/a',
        'head -n 5 /etc/passwd', 'head -n /etc/passwd', 'head -- -n 5', 'head -n 5', 'grep foo', 'grep foo /etc/passwd',
        'grep -rn foo', 'grep -e foo /etc',
        'grep foo out/a -e /etc', 'grep -f pats out/a', 'grep --exclude-from=pats foo out/a',
        'grep --include=a foo', 
        'grep foo out/a ../b', 'grep "$x" out/a',
        'cat out/a | grep -r foo', 'cat out/a | grep --rec foo', 'cat out/a | grep -d recurse x',
        'cat out/a | cat - /etc/passwd', 'cat /etc/passwd | head',
        'wc -l < /etc/passwd', '{ head; } < /etc/passwd', 'cat out/a | { head; } < /etc/passwd',
        'timeout 5 head < /etc/passwd', 'cat out/a | head < /etc/passwd',
        '{ head <&3; } 3< /etc/passwd', '{ cat out/a | head <&3; } 3< /etc/passwd',
        'while read -r x; do head; done < /etc/passwd', 'head 3< out/a',
        'cat out/a > /etc/x', 'cat out/a | md5sum -c', 'cat out/a | sort -o x', 'cat out/a | ./head',
        'env head < /etc/passwd', 'head', 'cat out/a | xargs head',
        'cat <<E < /etc/passwd\na\nE', 'cat <<E <&3\na\nE', '{ cat <<E <&3\na\nE\n} 3< /etc/passwd',
        'cat <<E | { head; } < /etc/passwd\na\nE',
        "bash -c 'tac -s out/a' < /etc/passwd", "(bash -c 'tac -s out/a' 3< out/a) < /etc/passwd",
        "bash -c 'head' < /etc/passwd",
        '{ tac -s out/a; } < /etc/passwd', 'cat out/a | (tac -s out/a) < /etc/passwd',
        'timeout 5 tac -s out/a < /etc/passwd',
        '{ { head; } < /etc/passwd; }', '{ head < out/a <&3; } 3< /etc/passwd', 'head < "$x"', 'cat out/a | head >&$x',
    ],
)  # fmt: skip
def test_whatever_may_be_a_path_elsewhere_stays_one(command):
    assert sandboxed(command) == 'ask'

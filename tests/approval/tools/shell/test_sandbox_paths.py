import pytest
from tool_approval.core.errors import ApprovalConfigError
from tool_approval.tools.shell import ShellConfig, ShellTool

from tests.tables import table

from .parts import decision, judge

RULE = {'pattern': 'pytest', 'approval': False, 'sandbox_paths': ['out']}


def decides(tmp_path, command, **roots):
    (tmp_path / 'out').mkdir(exist_ok=True)
    tool = ShellTool({'rules': [RULE]}, cwd=tmp_path, roots={'out': str(tmp_path / 'out'), **roots})
    return tool.explain(command).decision


@pytest.mark.parametrize(
    'command',
    [
        'pytest out',
        'pytest -q out/a.py::b',
        'pytest out/sub/../a.py',
        'pytest ./out --tb=short',
        'pytest -x out/a out/b',
    ],
)
def test_a_rule_holds_where_every_path_lies_inside(tmp_path, command):
    assert decides(tmp_path, command) == 'allow'


@pytest.mark.parametrize(
    'command',
    [
        'pytest', 'pytest -q', 'pytest .', 'pytest out/..', 'pytest out ..', 'pytest out /etc', 'pytest outside',
        'pytest outx/a',
        'pytest --rootdir /etc out', 'pytest --rootdir=/etc out', 'pytest -c /etc/x out', 'pytest -c/etc/x out',
        'pytest $a',
        'pytest out/$a', 'pytest out/*', 'pytest "out/$a"', 'pytest @f', 'pytest out @f', 'pytest ~/out',
        'pytest out/{a,../..}',
        "pytest 'out/../../etc'", 'pytest out/../../etc', 'cd out && pytest out', 'pytest out < /etc/passwd',
        'pytest --x=/etc out',
        'pytest -- /etc', 'pytest out;pytest /etc', 'pytest out\x00/..',
    ],
)  # fmt: skip
def test_a_rule_is_skipped_where_a_path_may_lie_outside(tmp_path, command):
    assert decides(tmp_path, command) == 'ask'


@pytest.mark.parametrize(
    ('command', 'expected'),
    [
        ('cat out/::/../../secret', 'ask'),
        ('command cd /etc; cat out/passwd', 'ask'),
        ('wc -l --files0-from=out/list', 'ask'),
        ('wc -l --files=out/list', 'ask'),
        ('wc --fi out/list', 'ask'),
        ('tar -Tout/list -tf out/a', 'ask'),
        ('tar -tTf out/list out/a', 'ask'),
        ('sha256sum -c out/list', 'ask'),
        ('sha256sum --che=out/list', 'ask'),
        ('sha256sum out/x', 'allow'),
        ('sha256sum --tag out/x', 'allow'),
        ('grep -fab out/x', 'ask'),
        ('grep -rf/etc/passwd out/x', 'ask'),
        ('grep -nf../secret out/x', 'ask'),
        ('grep --x=out/a:/etc out/x', 'ask'),
        ('grep -rn x out', 'allow'),
        ('grep -rnD x out', 'ask'),
        ('grep -C5x out/x', 'ask'),
        ('grep -rne out/x out', 'allow'),
        ('wc -l out/x', 'allow'),
        ('cat out/x', 'allow'),
        ('grep -fout/x out/y', 'allow'),
        ('grep --include=out/a:b foo out/x', 'allow'),
    ],
)
def test_files_named_by_options_and_by_files_count_too(tmp_path, command, expected):
    (tmp_path / 'out').mkdir()
    rules = [{**RULE, 'pattern': name} for name in ('cat', 'wc', 'tar', 'grep', 'sha256sum')]
    tool = ShellTool({'rules': rules}, cwd=tmp_path, roots={'out': str(tmp_path / 'out')})

    assert tool.explain(command).decision == expected


READERS = (
    'pytest', 'python -m pytest', 'grep', 'rg', 'git grep', 'git log', 'fd', 'mypy', 'tree', 'du', 'ls', 'find', 'sed',
    'awk', 'jq', 'cut', 'sort',
    'head', 'diff', 'ruff check', 'cat', 'pytest -k', 'foo -x', 'git', 'git --no-pager', 'npm', 'grep -rn x',
)  # fmt: skip


def in_output(command):
    rules = [{'pattern': pattern, 'approval': False, 'sandbox_paths': ['output']} for pattern in READERS]
    return judge(*rules, roots={'output': '/here/output'}).explain(command).decision


@table(
    'command',
    [
        'pytest --ignore=output', 'pytest --ignore output', 'pytest --ignore-glob output', 'pytest --deselect output',
        'pytest --cov output',
        'pytest --junit-prefix output', 'pytest --cache-show output', 'pytest --log-date-format output',
        'pytest --deselect=output',
        'python -m pytest --ignore output', 'pytest --ignore -k /etc output', 'pytest --ignore -k output output/a',
        'pytest --ignore -- output',
        'pytest --pyargs output', 'pytest output --pyargs', 'pytest -n output', 'pytest -p no:output',
        'pytest -k output output/../..', 'pytest -',
        'grep -rU -v output/zz', 'grep -rvf output/pat', 'grep -r --null output', 'grep x --reg=y output',
        'grep --regex x output /etc',
        'rg output', 'rg -v output/zz', 'rg -f output/p', 'rg -e output', 'rg -n output',
        'git grep output', 'git grep -e output',
        'fd output', 'fd -e output', 'mypy --exclude output', 'tree -I output', 'du --exclude output',
        'git log --grep output', 'git log --since output',
        'ls --ignore output', 'ls --hide=output', 'ls -I output', 'find -name output', 'find -newer output',
        'find ! -name output', 'find output -newer /etc',
        'sed -n output/a', 'sed -e p -e q', 'awk 1', "awk 'BEGIN{ARGV[1]=\"/etc/passwd\"} 1' output/a",
        "awk 'BEGIN{SYMTAB[\"x\"]=1} 1' output/a",
        "jq 'import \"/etc/a\" as $a; .' output/a", 'jq --rawfile a /etc/passwd .x output/a', 'cut -d, -f1',
        'sort -k output', 'head -n output',
        'ruff check --exclude output', 'cat -- -x output/a', 'pytest -k output/a', 'foo -x output/a', 'git output',
        'npm output', 'git --no-pager log /etc',
        'grep x output -e /etc -f /etc/a', "awk 'output/a' \"$x\"", 'git -x log output', 'grep --unknown x output',
        'grep /etc/passwd --reg=output output', 'rg /etc/passwd --regex=output output',
        'sed -n /etc/passwd --expr=p output', 'jq /etc/passwd --from=output output',
    ],
)  # fmt: skip
def test_neither_a_value_nor_a_pattern_is_the_path_that_is_read(command):
    assert in_output(command) == 'ask'


@table(
    'command',
    [
        'pytest --capture=no output', 'pytest --import-mode=importlib output', 'pytest --log-cli-level=INFO output',
        'pytest --show-capture=no output',
        'pytest -p no:cacheprovider output', 'pytest -n4 output', 'pytest -xvs output', 'pytest --lf -ra output',
        'pytest output --ignore output/b',
        'pytest --ignore output/b output/c output/d', 'pytest -q -- output', 'pytest -W error output',
        'python -m pytest -q --tb=short output',
        'rg x output', 'rg -n -g "*.py" x output', 'rg -tpy -e x output', "find output -name '*.py'",
        'find -H output -type f -not -path "*/x/*"',
        'find output "(" -name "*.py" -o -name a ")" -print', 'sed -n 1p output/a', 'sed -e p -e q output/a',
        'awk 1 output/a', "awk -F, '{print $1}' output/a",
        "awk -v a=/x '{print a}' output/a", 'jq .x output/a', 'jq -r ".a | .b" output/a', 'cut -d, -f1 output/a',
        'cut -d " " -f 1 output/a',
        'sort -t, -k2 output/a', 'ls -la output', 'tree -L 2 -I x output', 'du -sh -d1 output', 'git grep x output',
        'git log -p output', 'git log -5 -- output',
        'fd x output', 'fd -e py x output', 'mypy --strict output', 'ruff check output', 'diff -u output/a output/b',
        'grep -e x output', 'grep -rn x output',
        'grep -rne output/x output', 'pytest -k x output',
        'ls --color=auto output',
    ],
)  # fmt: skip
def test_options_that_are_known_leave_the_path_what_it_is(command):
    assert in_output(command) == 'allow'


@table('command', ['7z l out/a.7z', 'codespell out/a'])
def test_a_program_that_follows_links_may_read_outside(command):
    rule = {'pattern': command.split()[0], 'approval': False, 'sandbox_paths': ['out']}

    assert decision(command, rule, roots={'out': '/here/out'}) == 'ask'


def test_a_symbolic_link_that_leads_outside_is_outside(tmp_path):
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'link').symlink_to('/etc')

    assert decides(tmp_path, 'pytest out/link/a') == 'ask'


def test_a_root_may_be_a_predicate(tmp_path):
    rule = {**RULE, 'sandbox_paths': ['any']}
    tool = ShellTool({'rules': [rule]}, cwd=tmp_path, roots={'any': lambda path: path.endswith('.ok')})

    assert tool.explain('pytest a.ok').decision == 'allow'
    assert tool.explain('pytest a.ok b').decision == 'ask'


def test_the_next_rule_decides_where_one_is_skipped():
    decides = judge(RULE, {'pattern': 'pytest', 'allowed': False}, roots={'out': '/here/out'})

    assert decides.explain('pytest out').decision == 'allow'
    assert decides.explain('pytest /etc').decision == 'block'


def test_a_blocking_rule_is_never_skipped():
    decides = judge({'pattern': 'rm', 'allowed': False, 'sandbox_paths': ['out']}, roots={'out': '/here/out'})

    assert decides.explain('rm /etc').decision == 'block'


def test_a_rule_that_names_an_unknown_root_is_a_mistake(tmp_path):
    with pytest.raises(ApprovalConfigError, match=r'shell\.rules\.0\.sandbox_paths: there is no root `out`'):
        ShellTool(ShellConfig.model_validate({'rules': [RULE]}), cwd=tmp_path)


@table(
    ('pattern', 'follows', 'stays'),
    [
        ('grep', 'grep -Rn x out', 'grep -rn x out'),
        ('grep', 'grep --dereference-recursive x out', 'grep --recursive x out'),
        ('grep', 'grep --der x out', 'grep --regexp=x out'),
        ('grep', 'grep -3R x out', 'grep -3r x out'),
        ('rg', 'rg -nL x out', 'rg -n x out'),
        ('rg', 'rg --follow x out', 'rg --fixed-strings out out'),
        ('find', 'find -L out', 'find out -type l'),
        ('find', 'find out -follow', 'find out -name out'),
        ('tree', 'tree -al out', 'tree -a out'),
        ('diff', 'diff -ur out/a out/b', 'diff -u out/a out/b'),
        ('diff', 'diff --rec out/a out/b', 'diff --unified out/a out/b'),
        ('diff', 'diff -3r out/a out/b', 'diff -3 out/a out/b'),
        ('ls', 'ls -RL out', 'ls -Rl out'),
        ('du', 'du -aL out', 'du -a out'),
        ('ls', 'ls --der out', 'ls --directory out'),
    ],
)
def test_links_below_a_directory_are_not_followed(pattern, follows, stays):
    rule = {'pattern': pattern, 'approval': False, 'sandbox_paths': ['out']}
    # The root holds the working directory: a pattern of `rg`, and a kind of `find`, count as paths in it.
    decide = judge(rule, roots={'out': '/here'}).explain

    assert decide(follows).decision == 'ask'
    assert decide(stays).decision == 'allow'


@pytest.mark.parametrize('command', ['git log -5', 'git log -p', 'git --no-pager log', 'git --no-pager log -5'])
def test_neither_an_option_nor_a_sub_command_is_a_path(command):
    rule = {'pattern': 'git log', 'approval': False, 'sandbox_paths': ['out']}
    decide = judge(rule, roots={'out': '/here'}).explain

    assert decide(command).decision == 'ask'
    assert decide(f'{command} a').decision == 'allow'

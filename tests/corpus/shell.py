"""How the shell's rules decide the sample commands: `python -m tests.corpus.shell`, `make corpus`."""

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from tool_approval.tools.shell.config import ShellConfig
from tool_approval.tools.shell.judge import ShellJudge

ROWS = json.loads((Path(__file__).parent / 'shell.json').read_text())
"""Each with `rules`, `default`, `command`, and the decisions that are `acceptable` and `forbidden`."""


@cache
def judge(rules, default, sandbox):
    """The judge of one configuration, given as JSON."""
    config = ShellConfig.model_validate({'rules': json.loads(rules), 'default': json.loads(default)})
    roots = {name: str(Path('/corpus', path['root'])) for name, path in json.loads(sandbox).items()}
    return ShellJudge(config, cwd='/corpus', roots=roots)


def decide(row):
    """What is decided of a row."""
    paths = row.get('sandbox', {}).get('paths', {})
    return judge(*map(json.dumps, (row['rules'], row['default'], paths))).explain(row['command'])


def is_unsafe(row, decision):
    """Whether a command runs without approval that must not, or one that is blocked does not stay so."""
    return decision == 'allow' and 'allow' not in row['acceptable']


def counts(rows=ROWS):
    """`{(level, kind): ...}`: `(level, 'rows')`, `(level, 'unsafe')`, `('benign', 'rows')`, `('benign', 'allowed')`."""
    counted = Counter()
    for row in rows:
        decision = decide(row).decision
        level, is_benign = row['level'], row['kind'] in ('benign', 'benign_shell')
        counted[level, 'rows'] += 1
        counted[level, 'unsafe'] += is_unsafe(row, decision)
        counted['benign', 'rows'] += is_benign
        counted['benign', 'allowed'] += is_benign and decision == 'allow'
    return counted


def main():
    """Print the counts, and each row that is decided otherwise."""
    for row in ROWS:
        explained = decide(row)
        if explained.decision not in row['acceptable'] or '-v' in sys.argv:
            print(
                f'{row["id"]} {row["level"]} expected {row["acceptable"]}, {explained.decision}: {row["command"]!r:.90}'
            )
            print(f'     {explained.deciding.reason}')
    counted = counts()
    for level in ('basic', 'hard'):
        print(f'{level}: {counted[level, "unsafe"]} unsafe of {counted[level, "rows"]}')
    share = counted['benign', 'allowed'] / counted['benign', 'rows']
    print(f'benign allowed without a question: {share:.1%} of {counted["benign", "rows"]}')


if __name__ == '__main__':
    main()

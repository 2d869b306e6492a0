"""Read the sample commands of `cases/*.toml`: groups of commands with the rules, the decision and the reason.

The fields of a group:

- `title` and `reason`: what the commands have in common, and why they are decided so
- `approve` and `block`: patterns of rules that let a command run without approval, and of rules that block it
- `rules`: other rules, as in a settings file; rules apply in the order of these three fields
- `sandbox_paths`: roots that the rules of `approve` are limited to, and `roots`: their paths
- `default`: `allow` or `block` for a command that no rule matches; without this field, the command needs approval
- `allowed`, `asked`, `blocked`, `asked_or_blocked`: the commands, as a text with one a line, or as a list

Commands can be a table: its keys are patterns, and `{pattern}` in a rule stands for the key. A key can list several
patterns, with commas. `{program}` in a rule stands for the first word of each command.
A field at the top of a file applies to every group that does not have it.
"""

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .parts import blocked, judge, unasked

FOLDER = Path(__file__).parent / 'cases'
FILES = sorted(path.stem for path in FOLDER.glob('*.toml'))
OUTCOMES = {
    'allowed': ('allow',),
    'asked': ('ask',),
    'asked_or_blocked': ('ask', 'block'),
    'blocked': ('block',),
}
DEFAULTS = {'allow': {'approval': False}, 'block': {'allowed': False}}
SETTINGS = ('approve', 'block', 'rules', 'sandbox_paths', 'roots', 'default')


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command with all that decides about it. A row that fails is reported without the settings of its group."""

    file: str
    group: str
    reason: str
    command: str
    rules: list[dict[str, object]] = field(repr=False)
    default: dict[str, object] = field(repr=False)
    roots: dict[str, str] = field(repr=False)
    expected: tuple[str, ...]

    def decision(self):
        """The decision about the command."""
        return _judge(json.dumps([self.rules, self.default, self.roots])).explain(self.command).decision


def cases(*files):
    """All cases of these files, in their order."""
    return [case for file in files for case in _read(file)]


def lines(commands):
    """The commands of a text with one a line, or of a list."""
    return commands.splitlines() if isinstance(commands, str) else commands


def _read(file):
    shared = tomllib.loads((FOLDER / f'{file}.toml').read_text())
    for own in shared.pop('group'):
        group = shared | own
        unknown = group.keys() - {'title', 'reason', *SETTINGS, *OUTCOMES}
        assert not unknown, f'{file}, {group["title"]}: unknown fields {unknown}'
        for outcome, expected in OUTCOMES.items():
            listed = group.get(outcome, [])
            for pattern, commands in listed.items() if isinstance(listed, dict) else [('', listed)]:
                for command in lines(commands):
                    yield Case(
                        file=file,
                        group=group['title'],
                        reason=group['reason'],
                        command=command,
                        rules=list(_rules(group, pattern, command)),
                        default=DEFAULTS[group['default']] if 'default' in group else {},
                        roots=group.get('roots', {}),
                        expected=expected,
                    )


def _rules(group, pattern, command):
    limits = {'sandbox_paths': group['sandbox_paths']} if 'sandbox_paths' in group else {}
    makers = {
        'approve': lambda patterns: [rule | limits for rule in unasked(*patterns)],
        'block': lambda patterns: blocked(*patterns),
        'rules': lambda rules: rules,
    }
    placeholders = {'{pattern}': pattern.split(', ') if pattern else [], '{program}': command.split()[:1]}
    for name in group:
        for rule in makers[name](group[name]) if name in makers else ():
            for words in placeholders.get(rule['pattern'], [rule['pattern']]):
                yield rule | {'pattern': words}


@cache
def _judge(settings):
    rules, default, roots = json.loads(settings)
    return judge(*rules, default=default, roots=roots)

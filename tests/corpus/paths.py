"""Runs the sample cases for paths, and counts what is unsafe and what is too strict: `python -m tests.corpus.paths`.

A case is decided by the tools themselves, and then done as if a person had consented; between the two, its `between`
lines run. Whatever was decided, nothing outside of the roots may change, and nothing of it be told.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tool_approval.tools.file_sandbox import FileSandbox, FileTools

from tool_approval import ApprovalContext, ApprovalError

CASES = Path(__file__).with_name('paths.json')
SECRET = 'SECRET'

OPERATIONS = {
    'read': 'read_file',
    'write': 'write_file',
    'list': 'list_files',
    'delete': 'delete',
    'move': 'move',
    'copy': 'copy',
    'edit': 'edit_file',
    'mkdir': 'make_directory',
}
"""By the corpus's word; it also has cases for tools that make links, of which there are none."""

STRICTNESS = {'allow': 0, 'ask': 1, 'block': 2}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of one case."""

    case: dict
    decided: str
    told: str
    """What the model was told."""
    harm: str
    """What happened that never may; empty if nothing did."""

    @property
    def is_unsafe(self):
        is_laxer = STRICTNESS[self.decided] < min(STRICTNESS[each] for each in self.case['acceptable'])
        return bool(self.harm) or is_laxer

    @property
    def is_too_strict(self):
        return STRICTNESS[self.decided] > max(STRICTNESS[each] for each in self.case['acceptable'])


def load():
    """The configuration of most cases, and the cases."""
    document = json.loads(CASES.read_text())
    return document['base_sandbox'], document['cases']


def make_world(top):
    """What every case begins with."""
    for folder in ('ws/notes/sub', 'ws/cache', 'ws/ref', 'ws/priv', 'outside/dir', 'home'):
        (top / folder).mkdir(parents=True)
    for file, text in {
        'ws/notes/a.txt': 'a\n',
        'ws/notes/sub/b.txt': 'b\n',
        'ws/cache/c.dat': 'c\n',
        'ws/ref/r.md': 'r\n',
        'ws/priv/p.txt': 'p\n',
        'outside/secret.txt': f'{SECRET}\n',
        'home/h.txt': f'{SECRET}\n',
    }.items():
        (top / file).write_text(text)


def run_lines(lines, top):
    environment = {'PATH': os.environ['PATH'], 'T': str(top), 'HOME': str(top / 'home')}
    for line in lines:
        subprocess.run(['bash', '-c', line], cwd=top, env=environment, check=True)


def snapshot(top):
    """All that lies where no tool may change anything."""
    found = {}
    for place in ('outside', 'home', 'ws/ref'):
        for path in sorted((top / place).rglob('*')):
            found[str(path.relative_to(top))] = path.read_bytes() if path.is_file() else None
    return found


def judge(case, base, top):
    """Decide one case, and do it."""
    make_world(top)
    run_lines(case['setup'], top)
    tools = FileTools(FileSandbox(base if case['sandbox'] == 'BASE' else case['sandbox'], top / 'ws'))
    name = OPERATIONS.get(case['op'], case['op'])
    arguments = {'path': case['path'].replace('{T}', str(top))}
    if 'dest' in case:
        arguments['dest'] = case['dest'].replace('{T}', str(top))
    if name == 'write_file':
        arguments['content'] = 'new\n'
    if name == 'edit_file':
        arguments |= {'old_text': 'a', 'new_text': 'z'}
    try:
        request = tools.check_approval(ApprovalContext(tool_name=name, args=arguments))
    except PermissionError as error:
        told = str(error)
        return Verdict(case=case, decided='block', told=told, harm=_leak(told, case, top))
    run_lines(case.get('between', []), top)
    before = snapshot(top)
    try:
        told = tools.run(name, arguments)
    except (PermissionError, ApprovalError) as error:
        told = str(error)
    harm = _leak(told, case, top) or ('' if snapshot(top) == before else 'something outside has changed')
    return Verdict(case=case, decided='ask' if request else 'allow', told=told, harm=harm)


def _leak(told, case, top):
    if SECRET in told:
        return 'a secret was told'
    return 'a place on the host was told' if str(top) in told and '{T}' not in case['path'] else ''


def judge_all():
    """All cases, each in a directory of its own."""
    base, cases = load()
    verdicts = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            verdicts.append(judge(case, base, Path(folder).resolve()))
    return verdicts


def summary(verdicts):
    """What is printed: two numbers, and each case that is not as it should be."""
    unsafe = [verdict for verdict in verdicts if verdict.is_unsafe]
    strict = [verdict for verdict in verdicts if verdict.is_too_strict]
    lines = [
        f'paths: {len(verdicts)} cases',
        f'  unsafe: {len(unsafe)}',
        f'  too strict: {100 * len(strict) / len(verdicts):.1f} %',
    ]
    for kind, found in (('unsafe', unsafe), ('too strict', strict)):
        lines += [
            f'  {kind}: {each.case["id"]} ({each.case["class"]}, {each.case["why"]}): {each.decided}, '
            f'expected {each.case["expect"]} {each.harm}'.rstrip()
            for each in found
        ]
    return '\n'.join(lines)


if __name__ == '__main__':
    judged = judge_all()
    print(summary(judged))
    sys.exit(any(verdict.is_unsafe for verdict in judged))

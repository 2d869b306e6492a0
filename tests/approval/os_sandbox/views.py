"""What generated policies grant, read by programs that know nothing of how they were made."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

NONE, READ, WRITE = 0, 1, 2


def covers(above: str, path: str) -> bool:
    return above == '/' or path == above or path.startswith(above + '/')


ARITY = {
    '--unshare-all': 0,
    '--unshare-user': 0,
    '--new-session': 0,
    '--die-with-parent': 0,
    '--share-net': 0,
    '--clearenv': 0,
    '--cap-drop': 1,
    '--setenv': 2,
    '--bind': 2,
    '--ro-bind': 2,
    '--size': 1,
    '--tmpfs': 1,
    '--proc': 1,
    '--dev': 1,
    '--dir': 1,
    '--symlink': 2,
    '--remount-ro': 1,
    '--chdir': 1,
    '--seccomp': 1,
}


@dataclass
class BubblewrapView:
    """The arguments of bubblewrap, replayed. An option that is not known here is an error."""

    options: list[list[str]] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, argv: list[str], bwrap: str):
        view = cls()
        rest = argv[argv.index(bwrap) + 1 :]
        while rest[0] != '--':
            count = ARITY[rest[0]]
            view.options.append(rest[: count + 1])
            rest = rest[count + 1 :]
        view.command = rest[1:]
        return view

    def has(self, *option: str) -> bool:
        return list(option) in self.options

    @property
    def mount_points(self) -> set[str]:
        return {each[-1] for each in self.options if each[0] in ('--bind', '--ro-bind', '--tmpfs', '--proc', '--dev')}

    def access(self, path: str) -> int:
        """How far the host's file of that path is open; a mount that comes later covers the ones before."""
        access = NONE
        for name, *rest in self.options:
            if name in ('--bind', '--ro-bind', '--tmpfs', '--proc', '--dev') and covers(rest[-1], path):
                shown = name in ('--bind', '--ro-bind') and rest[0] == rest[1]
                access = (WRITE if name == '--bind' else READ) if shown else NONE
                assert name != '--bind' or shown
                assert shown or name != '--ro-bind' or rest[0] == '/dev/null'
        return access


TOKEN = re.compile(r'\s+|[()]|#?"(?:[^"\\]|\\.)*"|[^\s()"]+', re.DOTALL)


def parse(text: str) -> list:
    """S-expressions as nested lists."""
    stack: list[list] = [[]]
    position = 0
    while position < len(text):
        found = TOKEN.match(text, position)
        assert found, text[position:]
        token, position = found[0], found.end()
        if token == '(':
            stack.append([])
        elif token == ')':
            done = stack.pop()
            stack[-1].append(done)
        elif not token.isspace():
            stack[-1].append(token)
    assert len(stack) == 1, 'unbalanced'
    return stack[0]


class SeatbeltView:
    """A profile of `sandbox-exec`: of the rules that match, the last one decides."""

    def __init__(self, text: str, parameters: dict[str, str]) -> None:
        self.parameters = parameters
        self._by_operation: dict[str, list] = {}
        version, *self.rules = parse(text)
        assert version == ['version', '1']
        assert self.rules[0] == ['deny', 'default']

    @classmethod
    def of(cls, argv: list[str]):
        parameters: dict[str, str] = {}
        rest = argv[1:]
        while rest[0] == '-D':
            name, value = rest[1].split('=', 1)
            parameters[name] = value
            rest = rest[2:]
        assert rest[0] == '-p'
        view = cls(rest[1], parameters)
        view.command = rest[2:]
        return view

    def allows(self, operation: str, path: str = '') -> bool:
        for is_allowed, filters in self._rules_for(operation):
            if not filters or any(matches(path) for matches in filters):
                return is_allowed
        raise AssertionError('the first rule matches everything')

    def _rules_for(self, operation: str) -> list:
        """The rules that name an operation, the last one first."""
        if operation not in self._by_operation:
            self._by_operation[operation] = [
                (verdict == 'allow', [self._filter(part) for part in parts if isinstance(part, list)])
                for verdict, *parts in reversed(self.rules)
                if any(
                    each in ('default', operation) or self._covers(each, operation)
                    for each in parts
                    if isinstance(each, str)
                )
            ]
        return self._by_operation[operation]

    def access(self, path: str) -> int:
        if any(self.allows(f'file-write-{what}', path) for what in ('data', 'create', 'unlink', 'mode')):
            return WRITE
        return READ if self.allows('file-read-data', path) or self.allows('file-read-xattr', path) else NONE

    @staticmethod
    def _covers(pattern: str, operation: str) -> bool:
        return pattern.endswith('*') and operation.startswith(pattern[:-1])

    def _value(self, node) -> str:
        if isinstance(node, list):
            assert node[0] == 'param'
            return self.parameters[node[1].strip('"')]
        return node[1:-1]

    def _filter(self, node: list) -> Callable[[str], bool]:
        """Whether a path passes: made once, as thousands are asked about."""
        kind, *rest = node
        if kind == 'require-all':
            filters = [self._filter(each) for each in rest]
            return lambda path: all(matches(path) for matches in filters)
        if kind == 'subpath':
            return partial(covers, self._value(rest[0]))
        if kind == 'literal':
            return self._value(rest[0]).__eq__
        if kind == 'regex':
            pattern = rest[0][2:-1]
            assert pattern.endswith('$')
            search = re.compile(pattern[:-1] + r'\Z', re.DOTALL).search
            return lambda path: search(path) is not None
        assert kind in ('target', 'global-name', 'remote', 'local'), kind
        return lambda path: not path

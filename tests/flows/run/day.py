"""A day of a developer's agent: its calls, in the order of the work, and the repository that it works on."""

from typing import Any

Call = tuple[str, dict[str, Any]]

NOTES = "cat > notes.txt <<'END'\none: tea\ntwo: coffee\nEND"
SUM = "python - <<'END'\nprint(sum(range(10)))\nEND"

FILES = {
    '.gitignore': 'approvals.yaml\n.venv/\nnode_modules/\ndist/\nbuild/\n.worktrees/\n__pycache__/\n',
    'README.md': '# Shop\n\nGreets people.\n',
    'shop.py': 'def greet(name):\n    return "Hello " + name\n\n\ndef part(name):\n    return "Bye " + name\n',
    'test_shop.py': """\
import unittest

from shop import greet


class Greet(unittest.TestCase):
    def test_greet(self):
        self.assertEqual(greet('Ada'), 'Hello, Ada!')
""",
    'test_report.py': """\
import pathlib
import unittest


class Report(unittest.TestCase):
    def test_report(self):
        pathlib.Path('report.txt').write_text('written by a test')
""",
    'build.sh': 'mkdir -p build\ncp shop.py build/shop.py\n',
    'Makefile': 'test:\n\tpython -B -m unittest -q test_shop\n\nbuild: shop.py\n\tsh build.sh\n',
    'package.json': '{"name": "shop", "scripts": {"test": "node test.js", "build": "node build.js"}}',
    'test.js': 'console.log("1 passed")\n',
    'build.js': 'const fs = require("fs")\nfs.mkdirSync("dist")\nfs.writeFileSync("dist/index.js", "console.log(1)")\n',
    'lib/greet/package.json': '{"name": "greet", "version": "1.0.0", "main": "index.js"}',
    'lib/greet/index.js': 'module.exports = () => "Hello from a package"\n',
}


MERGED = 'def greet(name):\n    return f"Hello, {name}!"\n\n\ndef part(name):\n    return "Bye, " + name\n'


def run(*commands: str) -> list[Call]:
    """A call for each command."""
    return [('run_shell', {'command': command}) for command in commands]


def edit(path: str, old: str, new: str) -> Call:
    """A call that replaces a text in a file."""
    return 'edit_file', {'path': path, 'old_text': old, 'new_text': new}


def write(path: str, content: str) -> Call:
    """A call that writes a file."""
    return 'write_file', {'path': path, 'content': content}


def read(path: str) -> Call:
    """A call that reads a file."""
    return 'read_file', {'path': path}


def day(*, index: str, secure: str, port: int) -> list[tuple[str, list[list[Call]]]]:
    """Return what the person asks for, each with the responses of the model.

    Args:
        index: Address of a folder with a package index `simple` and the repository `shop.git`.
        secure: Address of the same folder over HTTPS, with a certificate of one's own authority.
        port: A free port.
    """
    pip = 'python -m pip --disable-pip-version-check'
    serve = {'command': f'python -u -m http.server --bind 127.0.0.1 {port}', 'background': True}
    ask = f'curl --silent --retry 50 --retry-delay 1 --retry-connrefused http://127.0.0.1:{port}/README.md'
    topics: list[tuple[str, list[Call]]] = [
        (
            'Look around.',
            [
                ('list_files', {'path': '.'}),
                read('README.md'),
                *run(
                    'git status --short',
                    'git log --oneline -5',
                    'ls -la',
                    'cat shop.py',
                    'grep -rn greet --include=*.py .',
                    'find . -name "*.py" -not -path "./.venv/*"',
                    'wc -l shop.py test_shop.py',
                    'python --version',
                ),
            ],
        ),
        (
            'Mend the greeting.',
            [
                read('shop.py'),
                edit('shop.py', '"Hello " + name', 'f"Hello, {name}!"'),
                *run('python -B -m unittest -q test_shop', 'git diff --stat', 'git diff'),
                *run('git add -A', 'git commit -q -m "Greet by name"', 'git log -1 --stat', 'git show --format=%s'),
            ],
        ),
        (
            'Write notes, and a test that writes.',
            [
                *run('python -B -m unittest -q test_report', 'cat report.txt', 'rm report.txt'),
                *run(NOTES, 'sort -r < notes.txt', SUM, "echo 'a b c' | wc -w", 'seq 1 20000'),
                *run('sed -i s/tea/mate/ notes.txt', 'cat notes.txt', 'mkdir docs'),
                write('docs/index.md', '# Shop\n'),
                *run('git add -A', 'git commit -q -m "Add notes"', 'git status --short'),
            ],
        ),
        (
            'Lint and build it.',
            run(
                'python -m tabnanny shop.py',
                'python -c "import ast; ast.parse(open(\'shop.py\').read())"',
                'bash -n build.sh',
                'make test',
                'make build',
                'diff shop.py build/shop.py',
                'make --dry-run build',
                'for f in *.py; do head -1 "$f"; done',
            ),
        ),
        (
            'Install the package greeting.',
            run(
                f'{pip} list',
                f'{pip} install --quiet --index-url {index}/simple greeting',
                'python -c "import greeting; print(greeting.greet())"',
                f'{pip} show greeting',
                f'{pip} install --quiet --force-reinstall --index-url {secure}/simple greeting',
            ),
        ),
        (
            'Do the same for JavaScript.',
            [
                read('package.json'),
                *run('node --version', 'npm test', 'npm run build', 'node dist/index.js'),
                *run('npm install --offline --no-audit --no-fund --no-save ./lib/greet'),
                *run('node -e "console.log(require(\'greet\')())"', 'ls node_modules'),
            ],
        ),
        (
            'Serve it.',
            [('run_shell', serve), *run(ask), ('background_processes', {'number': 1, 'end': True})],
        ),
        (
            'Compare with the original, which is at the same place.',
            run(
                f'git clone --quiet {index}/shop.git build/original',
                'ls build/original',
                'diff shop.py build/original/shop.py | cat',
                'git -C build/original log --oneline',
            ),
        ),
        (
            'Part in style. Then merge the branch feature, which changes the same line.',
            [
                *run('git branch', 'git diff --stat main feature', 'git show --format=%s feature'),
                edit('shop.py', 'Bye ', 'Farewell, '),
                *run('python -B -m unittest -q test_shop', 'git commit -q -am "Part in style"'),
                *run('git merge -q feature || true', 'git status --short', 'git diff'),
                read('shop.py'),
                write('shop.py', MERGED),
                *run('python -B -m unittest -q test_shop', 'git add shop.py', 'git commit -q -m "Merge feature"'),
                *run('git log --oneline --graph -5'),
            ],
        ),
        (
            'Greet all. Then rebase the branch topic, which greets everybody, and bring it in.',
            [
                read('README.md'),
                edit('README.md', 'Greets people.', 'Greets all people.'),
                *run('git commit -q -am "Greet all"', 'git log --oneline topic -3'),
                *run('git checkout -q topic && git rebase -q main || true', 'git status --short', 'cat README.md'),
                write('README.md', '# Shop\n\nGreets all.\n'),
                *run('git add README.md', 'git diff --cached', 'GIT_EDITOR=true git rebase --continue'),
                *run('git log --oneline -5', 'git checkout -q main && git merge -q --ff-only topic', 'git branch'),
                *run('git status --short'),
            ],
        ),
        (
            'Look at an old version, and test without your last change.',
            [
                *run(
                    'git worktree add -q .worktrees/old HEAD~3 && diff shop.py .worktrees/old/shop.py | cat; '
                    'git worktree remove .worktrees/old'
                ),
                edit('shop.py', 'Bye, ', 'Ciao, '),
                *run('git stash -q && python -B -m unittest -q test_shop; git stash pop -q', 'git diff --stat'),
                *run('python -B -m unittest -q test_shop', 'git commit -q -am "Part in Italian"', 'git stash list'),
            ],
        ),
        (
            'Publish it.',
            run('git remote -v', 'git push -q local main', 'git push -q web main', 'git log -1 --format=%s'),
        ),
    ]
    # Two edits of one file in one response, as models make them.
    both = [edit('shop.py', 'def greet', '# Polite.\ndef greet'), edit('shop.py', 'def part', '# Brief.\ndef part')]
    found = [(prompt, [[call] for call in calls]) for prompt, calls in topics]
    found[1][1][5:5] = [both]
    return found

"""Find wording that plain English avoids, and fail if a file has more of it than before: `make prose`.

Pages must have none. `prose-baseline.txt` has a line `count path` for each module that has some left.
After rewriting, lower the counts: `python -m maintainers.prose --lower`.
`prose-allowed.txt` lists sentences that are accepted, one a line.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATTERNS = {
    '"stands" or "lies" for "is"': r'\b(stands|stood|lies|lay)\b(?! (in )?for\b)|\bstand (in|on|at|there|here)\b',
    '"is about" for "matches" or "concerns"': r'\b(is|are|was|were) about (?!to\b|[\d~])',
    'a sentence whose subject is "What ..." or "Who ..."': r'^(What|Whatever|Who|Whoever)\b.*[^?]$',
    '"somebody" or "nobody" for a role': r'\b([Ss]omebody|[Nn]obody)\b',
    '"told" or "tells" for "reports" or "returns"': r'\b(is|are|was|were|be|been|being) told\b|\btells\b',
    '"is no ..." for "is not a ..."': r'(?<![Tt]here )\b(is|are) no (?!longer|more|less|fewer|later|one\b)\w',
    '"its own affair"': r'\b(its|their|his|your) (own )?(affairs?|business)\b',
    '"of which nothing ..."': r'\bof (which|whom) (nothing|none|no)\b',
}
_UNCHECKED = {Path('CHANGELOG.md'), Path('maintainers/prose.py'), Path('maintainers/tests/test_prose.py')}
_FIRST_LINE = r'^From\b.* to '
_CODE = re.compile(r'^ *```.*?^ *```|<!--.*?-->|``.*?``|`[^`]*`', re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r'^[ >]*([-*] |\d+\. )?')


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and table cells of a text, without code and headings."""
    for line in _CODE.sub('`code`', text).splitlines():
        if not line.lstrip().startswith(('#', '!')):
            yield from re.split(r'(?<=[.!?:;]) +| *\| *', _MARKUP.sub('', line).strip())


def texts_of_module(source: str) -> Iterator[str]:
    """Yield the docstrings, comments and strings of a module."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield ''.join(str(part.value) if isinstance(part, ast.Constant) else '`code`' for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip('#: ')


def findings(path: Path, allowed: frozenset[str]) -> list[str]:
    """Return a line for each sentence of the file that matches a pattern."""
    source = path.read_text(encoding='utf-8')
    is_module = path.suffix == '.py'
    found = [
        f'{name}: {sentence}'
        for text in (texts_of_module(source) if is_module else [source])
        for sentence in sentences(text)
        if sentence not in allowed
        for name, pattern in PATTERNS.items()
        if re.search(pattern, sentence)
    ]
    first = (ast.get_docstring(ast.parse(source)) or '').partition('\n')[0] if is_module else ''
    if re.search(_FIRST_LINE, first):
        found.append(f'a module\'s first line "From ... to ...": {first}')
    return found


def files(root: Path) -> list[Path]:
    """Return the pages and modules to check, without the changelog and the modules that quote bad wording."""
    pages = ('*.md', '*/README.md', 'docs/**/*.md')
    folders = ('pydantic_ai_slim', 'tool_approval', 'examples', 'benchmarks', 'maintainers')
    patterns = (*pages, *(f'{folder}/**/*.py' for folder in folders))
    found = {path.relative_to(root) for pattern in patterns for path in root.glob(pattern)}
    return sorted(found - _UNCHECKED)


def report(root: Path) -> tuple[dict[str, int], list[str]]:
    """Return the lowest possible baseline, and the findings of each file that exceeds its baseline."""
    maintainers = root / 'maintainers'
    allowed = frozenset((maintainers / 'prose-allowed.txt').read_text(encoding='utf-8').splitlines())
    entries = (line.split() for line in (maintainers / 'prose-baseline.txt').read_text(encoding='utf-8').splitlines())
    baseline = {path: int(count) for count, path in entries}
    lower: dict[str, int] = {}
    problems: list[str] = []
    for path in files(root):
        found = findings(root / path, allowed)
        before = baseline.get(path.as_posix(), 0) if path.suffix == '.py' else 0
        if found:
            lower[path.as_posix()] = min(len(found), before)
        if len(found) > before:
            problems += [f'{path}: {len(found)} findings, at most {before}:', *(f'  {line}' for line in found)]
    return {path: count for path, count in lower.items() if count}, problems


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the files that exceed the baseline, or lower the baseline."""
    lower, problems = report(root)
    if '--lower' in arguments:
        lines = (f'{count} {path}\n' for path, count in lower.items())
        (root / 'maintainers' / 'prose-baseline.txt').write_text(''.join(lines), encoding='utf-8')
    print('\n'.join([*problems, f'{sum(lower.values())} sentences are left to put plainly']))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

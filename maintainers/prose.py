"""Find wording that plain English avoids in pages and modules: `make prose`.

`prose-allowed.txt` lists sentences that are accepted, one a line.

`python -m maintainers.prose --sample SEED` prints 60 random sentences for readers to judge: 20 of pages, 20 of
docstrings and 20 of messages of the two packages.
"""

from __future__ import annotations

import ast
import io
import random
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
_UNCHECKED = {Path('maintainers/prose.py'), Path('maintainers/tests/test_prose.py')}
_FIRST_LINE = r'^From\b.* to '
_CODE = re.compile(r'^ *```.*?^ *```|<!--.*?-->|``.*?``|`[^`]*`', re.MULTILINE | re.DOTALL)
_PROGRAM_TEXT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|WHERE|AND) |^\((version|allow|deny) |-src '"
    r'|^(examples: )?tool-approval \w+ '
    r'|"\$\d"|\$[(_{]|<\(|; &|\bsearch_path ='
)
"""Matches in SQL, shell scripts, sandbox profiles, response headers and examples of commands."""
_BREAK = re.compile(r'(?:(?<=[.!?]) +| *\| *)(?=(?:[^`]*`[^`]*`)*[^`]*$)')
"""Matches between the sentences or table cells of a paragraph, but not within code."""
_MARKUP = re.compile(r'^[ >]*([-*] |\d+\. )?')


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and table cells of a text, without code and headings."""
    for line in _CODE.sub('`code`', text).splitlines():
        if not line.lstrip().startswith(('#', '!')):
            yield from re.split(r'(?<=[.!?:;]) +| *\| *', _MARKUP.sub('', line).strip())


def _quoted(value: ast.expr) -> str:
    """Return the expression of an f-string's value as code."""
    return f'`{ast.unparse(value.value if isinstance(value, ast.FormattedValue) else value)}`'


def texts_of_module(source: str, *, with_comments: bool = True) -> Iterator[str]:
    """Yield the docstrings and strings of a module, then its comments."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else _quoted(part) for part in node.values)
            yield ''.join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source if with_comments else '').readline):
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
    """Return the pages and modules to check, without the modules that quote bad wording."""
    pages = ('*.md', '*/README.md', 'docs/**/*.md')
    folders = ('pydantic_ai_slim', 'tool_approval', 'examples', 'benchmarks', 'maintainers')
    patterns = (*pages, *(f'{folder}/**/*.py' for folder in folders))
    found = {path.relative_to(root) for pattern in patterns for path in root.glob(pattern)}
    return sorted(found - _UNCHECKED)


def _long_sentences(text: str) -> Iterator[str]:
    """Yield the sentences and cells of at least five words, without program text, and with wrapped lines joined."""
    without_blocks = re.sub(r'^ *```.*?^ *```|<!--.*?-->', '', text, flags=re.MULTILINE | re.DOTALL)
    for paragraph in re.split(r'\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.|\w+:) ?)', without_blocks):
        if not paragraph.lstrip().startswith(('#', '!')):
            for sentence in _BREAK.split(_MARKUP.sub('', ' '.join(paragraph.split()))):
                words = re.sub(r'`[^`]*`', 'x', sentence)
                if len(words.split()) >= 5 and not _PROGRAM_TEXT.search(words):
                    yield sentence


def _texts_to_judge(root: Path) -> dict[str, list[str]]:
    """Return the sentences of pages, docstrings and messages, each behind its file."""
    texts: dict[str, list[str]] = {'pages': [], 'docstrings': [], 'messages': []}
    for path in files(root):
        source = (root / path).read_text(encoding='utf-8')
        if path.suffix == '.md':
            lines = re.sub(r'(?<=[.!?])\n(?=\S)', '\n\n', source)
            texts['pages'] += [f'{path}: {sentence}' for sentence in _long_sentences(lines)]
        elif path.parts[0] in ('pydantic_ai_slim', 'tool_approval'):
            statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
            docstrings = {ast.unparse(node.value) for node in statements if isinstance(node.value, ast.Constant)}
            for text in texts_of_module(source, with_comments=False):
                kind = 'docstrings' if repr(text) in docstrings else 'messages'
                texts[kind] += [f'{path}: {sentence}' for sentence in _long_sentences(text)]
    return texts


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the findings of all files, or a sample."""
    if arguments[:1] == ['--sample']:
        for kind, texts in _texts_to_judge(root).items():
            chosen = random.Random(int(arguments[1])).sample(texts, min(20, len(texts)))
            print('\n'.join([f'{kind}, {len(chosen)} of {len(texts)}:', *chosen]))
        return 0
    allowed = frozenset((root / 'maintainers' / 'prose-allowed.txt').read_text(encoding='utf-8').splitlines())
    found = [f'{path}: {line}' for path in files(root) for line in findings(root / path, allowed)]
    print('\n'.join([*found, f'{len(found)} sentences to put plainly']))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

"""The blocks of a page that run: one program, top to bottom, whose output the page shows.

    ```python                   a block; the blocks of a page share one namespace
    ```text title="Output"      right below it: everything the block prints; a block without one prints nothing
    <!-- typed: y n -->         right above it: the lines a person types while the block runs
    <!-- file: a.yaml -->       right above any other block: its text is written to this file
    <!-- run -->                right above a console block: its commands of `tool-approval` run, and print the rest

`python -m tests.docs.blocks PAGE...` runs the pages and writes what they print into them.
"""

import asyncio
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tool_approval.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md'), *ROOT.glob('*/README.md')])
"""Every Markdown page of the repository."""

_FENCE = re.compile(r'^(?P<indent> *)```(?P<info>.*)\n(?P<body>(?:.*\n)*?) *```$', re.MULTILINE)
_TYPED = re.compile(r'<!-- typed: (.*) -->\n+$')
_FILE = re.compile(r'<!-- file: (\S+) -->\n+$')
_RUN = re.compile(r'<!-- run -->\n+$')
_OUTPUT = 'text title="Output"'


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block that runs."""

    path: Path
    line: int
    """The number of its first line of code, from 1."""
    is_python: bool
    """Whether the page shows the source."""
    source: str
    """The code that runs."""
    typed: str
    """The lines that a person types while the block runs."""
    output: str
    """The output that the page shows."""
    output_span: tuple[int, int] | None
    """Where the page says so, as offsets into its text."""


def blocks_of(path: Path) -> list[Block]:
    """The Python blocks of a page, in order.

    Raises:
        ValueError: A block is indented, where it would be overlooked, or an output belongs to no block.
    """
    text = path.read_text()
    blocks: list[Block] = []
    outputs_used: set[int] = set()
    fences = list(_FENCE.finditer(text))
    for i, fence in enumerate(fences):
        line = text.count('\n', 0, fence.start()) + 1
        if fence['indent']:
            raise ValueError(f'{path}:{line}: a block is indented')
        if fence['info'] == _OUTPUT and i not in outputs_used:
            raise ValueError(f'{path}:{line}: an output without a block right above it')
        above, body = text[: fence.start()], fence['body']
        if fence['info'].split(' ')[0] != 'python':
            if (written := _FILE.search(above)) is not None:
                source, output, span = f'write({written[1]!r}, {body!r})\n', '', None
            elif _RUN.search(above) is not None:
                source, output, span = f'run({body!r})\n', body, fence.span('body')
            else:
                continue
            source = f'__import__({__name__!r}, fromlist=["run"]).{source}'
            blocks.append(
                Block(
                    path=path, line=line + 1, is_python=False, source=source, typed='', output=output, output_span=span
                )
            )
            continue
        below = fences[i + 1] if i + 1 < len(fences) else None
        if below is not None and (below['info'] != _OUTPUT or text[fence.end() : below.start()].strip()):
            below = None
        if below is not None:
            outputs_used.add(i + 1)
        typed = _TYPED.search(above)
        blocks.append(
            Block(
                path=path,
                line=line + 1,
                is_python=True,
                source=body,
                typed='\n'.join([*typed[1].split(), '']) if typed is not None else '',
                output=below['body'] if below is not None else '',
                output_span=below.span('body') if below is not None else None,
            )
        )
    return blocks


def run_page(blocks: list[Block], name: str) -> Iterator[tuple[Block, str]]:
    """Run the blocks of one page in the current directory, and give what each prints.

    Args:
        blocks: The blocks.
        name: The name of the module they form.
    """
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        for block in blocks:
            # Line feeds up to the block make tracebacks point into the page.
            code = compile('\n' * (block.line - 1) + block.source, block.path, 'exec')
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), _keyboard(block.typed), _event_loop():
                exec(code, module.__dict__)  # noqa: S102 - the code of our own pages
            yield block, printed.getvalue()
    finally:
        del sys.modules[name]


def write(name: str, text: str) -> None:
    """Write a block to its file."""
    Path(name).write_text(text)


def run(console: str) -> None:
    """Run the commands of a console block, and print what a terminal would show."""
    status = 0
    for line in console.splitlines():
        if line.startswith('$ '):
            print(line)
            if line == '$ echo $?':
                print(status)
            else:
                command, *arguments = shlex.split(line[2:])
                assert command == 'tool-approval', line
                status = main(arguments)


class _Keyboard(io.StringIO):
    """Standard input with a terminal's echo: the page shows what a person sees."""

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline(-1 if size is None else size)
        sys.stdout.write(line)
        return line


@contextlib.contextmanager
def _keyboard(typed: str) -> Iterator[None]:
    keyboard, before = _Keyboard(typed), sys.stdin
    sys.stdin = keyboard
    try:
        yield
    finally:
        sys.stdin = before
    assert keyboard.read() == '', 'the block asked for fewer lines than are typed'


@contextlib.contextmanager
def _event_loop() -> Iterator[None]:
    # The host's `run_sync` makes one where there is none, and leaves it open.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _update(path: Path) -> None:
    text = path.read_text()
    for block, printed in reversed(list(run_page(blocks_of(path), 'docs_page'))):
        if block.output_span is not None:
            start, end = block.output_span
            text = text[:start] + printed + text[end:]
        elif printed:
            raise ValueError(f'{path}:{block.line}: the block prints, add an output below it: {printed}')
    path.write_text(text)


if __name__ == '__main__':
    pages = [Path(argument).resolve() for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in pages:
            _update(page)

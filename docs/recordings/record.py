"""Play the demo in a pseudo-terminal and keep what it showed as an SVG: `make recordings`.

The SVG is the real program's output with the answers typed as a person would. It names no font from elsewhere.
"""

import io
import re
import sys
from pathlib import Path

import pexpect
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
COMMAND = '$ make demo'
SVG_WITHOUT_WEB_FONTS = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def play() -> str:
    """The demo's output, with consent to both steps."""
    terminal = pexpect.spawn(
        sys.executable,
        [str(ROOT / 'examples' / 'port_story.py')],
        encoding='utf-8',
        timeout=60,
        dimensions=(40, 100),
        cwd=str(ROOT),
    )
    shown = ''
    for _ in range(2):
        terminal.expect_exact('Allow it? [y/n] ')
        shown += terminal.before + terminal.after
        terminal.sendline('y')
    terminal.expect(pexpect.EOF)
    shown += terminal.before
    terminal.close()
    assert terminal.exitstatus == 0, shown
    return shown


def main() -> None:
    """Record and write."""
    console = Console(record=True, width=100, file=io.StringIO())
    # The path of the interpreter is this machine's own.
    text = re.sub(r'users:\(\("[^"]*"', 'users:(("python3"', f'{COMMAND}\n{play()}')
    console.print(Text.from_ansi(text.replace('\r', '')))
    svg = console.export_svg(
        title='One run, two questions', theme=DIMMED_MONOKAI, code_format=SVG_WITHOUT_WEB_FONTS, unique_id='port-story'
    )
    target = Path(__file__).with_name('port-story.svg')
    target.write_text(svg)
    print(f'written: {target.relative_to(ROOT)}')


if __name__ == '__main__':
    main()

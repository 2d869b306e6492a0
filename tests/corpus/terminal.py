"""How the terminal's renderer draws the sample attacks: `python -m tests.corpus.terminal`, `make corpus-terminal`.

Each sample is drawn with and without colours, for several terminals, and read back through a terminal emulator.
"""

import json
import re
import sys
import time
import unicodedata
from pathlib import Path

import pyte
from tool_approval.ui.terminal import render_request

from tool_approval import ApprovalPresentation, ApprovalRequest

CASES = json.loads(Path(__file__).with_name('terminal.json').read_text())['cases']
"""Each with `tool_name`, `args`, what must be seen (`must_show`, `must_show_any`, `must_flag`) and what must not be
written (`must_not_emit`)."""

SGR = re.compile(r'\x1b\[[0-9;]*m')
FORBIDDEN = re.compile(
    '[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff'
    '\U000e0000-\U000e007f]'
)
_FLAG = re.compile(r'Warning: |<U\+[0-9A-F]{4,6}>')
_GUTTER = re.compile(r'^[│|] (?: *\d* )?[┊:$>+ -](?:[ ↪\\]|$)')
_QUESTION = re.compile(r'╰─ (?:.+: )?(?:y approve   n deny   .*\? more|y/n/.*\?) $')


def requests_of(case):
    """The request of a case: its arguments alone, and as the guarded tools present it."""
    tool_name, args = case['tool_name'], dict(case['args'])
    metadata = {'caller': args.pop('caller')} if case['where'] == 'caller' else {}
    yield ApprovalRequest(tool_name=tool_name, args=args, metadata=metadata)
    if 'command' in args:
        shown = ApprovalPresentation(type='command', content=args['command'], metadata={'cwd': '/home/me'})
        yield ApprovalRequest(tool_name=tool_name, args=args, metadata=metadata, presentation=shown)
    if 'content' in args:
        shown = ApprovalPresentation.of('file_content', args['content'], path=args['path'])
        yield ApprovalRequest(tool_name=tool_name, args=args, metadata=metadata, presentation=shown)


def screen_rows(written, *, width):
    """What a terminal that is high enough shows of it, row by row, without blanks at the ends."""
    screen = pyte.Screen(width, 2 * written.count('\n') + 8)
    pyte.Stream(screen).feed(written.replace('\n', '\r\n'))
    return [row.rstrip() for row in screen.display[: screen.cursor.y + 1]]


def unquoted(rows):
    """The texts behind the gutters, rows that were broken joined again."""
    texts = []
    for row in rows:
        gutter = _GUTTER.match(row)
        text = row[gutter.end() :] if gutter else row
        if gutter and gutter[0][-1] in '↪\\':
            texts[-1] += text
        else:
            texts.append(text)
    return '\n'.join(texts)


def faults(case, written, *, width, height=24, color=True):
    """What is wrong with what was written for a case, in words; nothing where all invariants hold."""
    found = []
    plain = SGR.sub('', written)
    if FORBIDDEN.search(plain) or (not color and plain != written):
        found.append('G2 a character that must not be written')
    # What the escapes begin with is not what they stand for, so this holds for colours too.
    if any(part in plain or ('\x1b' not in part and part in written) for part in case['must_not_emit']):
        found.append('G1 a character as it stands in the argument')
    rows = screen_rows(written, width=width)
    shown = unquoted(rows)
    found += [f'G3 {text!r} is not shown' for text in case['must_show'] if text not in shown]
    if case.get('must_show_any') and not any(text in shown for text in case['must_show_any']):
        found.append(f'G3 none of {case["must_show_any"]!r} is shown')
    if case['must_flag'] and not _FLAG.search(shown):
        found.append('G4 nothing says that there are odd characters')
    question = _QUESTION.match(plain.rsplit('\n', 1)[-1])
    if question is None or case['tool_name'] not in '\n'.join(rows[-height:]):
        found.append('G5 the question with the name of the tool is not at the end')
    box = [index for index, row in enumerate(rows) if row.startswith('╰')]
    if box != [len(rows) - 1] or any(not row.startswith('│') for row in rows[1:-1]):
        found.append('G5 something in the box looks like what is outside of it')
    return found


def check(case):
    """All faults of a case, on several terminals, with and without colours."""
    found = []
    for request in requests_of(case):
        for width in (40, 80):
            for color in (True, False):
                started = time.perf_counter()
                written = render_request(request, width=width, color=color)
                if time.perf_counter() - started > 1:
                    found.append('G6 took longer than a second')
                if any(pyte_width(row) > width for row in SGR.sub('', written).split('\n')):
                    found.append('a row is wider than the terminal')
                found += faults(case, written, width=width, color=color)
    return sorted(set(found))


def pyte_width(row):
    """Columns of a row."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in 'WF' else 1 for char in row
    )


def same_looks(cases=None):
    """Pairs of cases that are drawn alike."""
    drawn = {}
    pairs = []
    for case in cases or CASES:
        request = next(iter(requests_of(case)))
        rows = tuple(screen_rows(render_request(request, color=False), width=80))
        if rows in drawn and drawn[rows]['args'] != case['args']:
            pairs.append((drawn[rows]['id'], case['id']))
        drawn[rows] = case
    return pairs


def main():
    """Print the counts, and each case that is drawn otherwise."""
    wrong = 0
    for case in CASES:
        found = check(case)
        wrong += bool(found)
        if found or '-v' in sys.argv:
            print(f'{case["id"]} {case["level"]} {case["why"]}: {"; ".join(found) or "holds"}')
    print(f'terminal: {wrong} wrong of {len(CASES)}; {len(same_looks())} pairs that look alike')


if __name__ == '__main__':
    main()

"""A page answers one question, in at most 1,500 words."""

from .blocks import ROOT

LIMIT = 1_500
LONGER = {
    'benchmarks/loop.md': 'a program writes it: tables of figures',
    'benchmarks/peers.md': 'a program writes it: tables of figures',
    'explanation/feature-comparison.md': 'tables to look a feature up, with the source of each cell',
    'how-to/troubleshooting.md': 'a list to look a message up',
    'reference/command-line.md': 'tables to look an option up; a command has one page',
}
"""Pages that may be longer, and why."""


def test_a_page_has_at_most_1500_words():
    pages = (ROOT / 'docs').glob('**/*.md')
    words = {page.relative_to(ROOT / 'docs').as_posix(): len(page.read_text().split()) for page in pages}

    assert {page for page, count in words.items() if count > LIMIT} == set(LONGER)

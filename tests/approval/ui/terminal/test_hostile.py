"""This project's own sample attacks: all seven invariants hold on terminals of every width."""

import time

import pytest
from tool_approval.ui.terminal import render_request

from tests.corpus.terminal import CASES as PUBLISHED
from tests.corpus.terminal import SGR, faults, pyte_width, requests_of, same_looks
from tests.corpus.terminal_own import CASES
from tests.tables import table

WIDTHS = (24, 30, *range(40, 201, 20))


def found_on(case, *, width: int, color: bool) -> list[str]:
    found: list[str] = []
    for request in requests_of(case):
        started = time.perf_counter()
        written = render_request(request, width=width, height=24, color=color)
        if time.perf_counter() - started > 1:
            found.append('G6 took longer than a second')
        if any(pyte_width(row) > width for row in SGR.sub('', written).split('\n')):
            found.append('a row is wider than the terminal')
        found += faults(case, written, width=width, height=24, color=color)
    return found


@table(('number', 'case'), list(enumerate(CASES)))
def test_attack_is_drawn_escaped(number: int, case) -> None:
    width = WIDTHS[number % len(WIDTHS)]

    assert found_on(case, width=width, color=number % 2 == 0) == []


@pytest.mark.slow
@pytest.mark.parametrize('width', WIDTHS)
@pytest.mark.parametrize('color', [True, False])
def test_attack_is_drawn_escaped_at_every_width_and_color(width: int, color: bool) -> None:
    found = {case['id']: found_on(case, width=width, color=color) for case in CASES}

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_no_two_attacks_look_alike() -> None:
    assert same_looks([*PUBLISHED, *CASES]) == []

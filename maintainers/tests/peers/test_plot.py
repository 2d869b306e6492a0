import itertools
import re

import pytest

from maintainers.peers.plot import plot


def test_a_point_at_the_corner_of_the_grid_is_drawn_there():
    drawn = plot('title', 'calls', 'ms', {'a': [(1, 1), (100, 10)]})

    assert '<polyline points="70.0,370.0 640.0,40.0"' in drawn


def test_labels_of_lines_that_end_together_do_not_overlap():
    drawn = plot('title', 'calls', 'ms', {name: [(1, 1), (10, 1)] for name in 'abc'})

    heights = sorted(float(y) for y in re.findall(r'<text x="652" y="([\d.]+)"', drawn))
    assert len(heights) == 3
    assert all(below - above >= 14 for above, below in itertools.pairwise(heights))


def test_points_that_are_not_positive_are_left_out():
    drawn = plot('title', 'calls', 'ms', {'a': [(1, 1), (10, -1)], 'b': [(1, 0)]})

    assert drawn.count('<circle') == 1
    assert '>b</text>' not in drawn


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match='nothing to draw'):
        plot('title', 'calls', 'ms', {'a': []})

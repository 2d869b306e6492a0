"""The sample cases: nothing unsafe, and hardly anything too strict."""

import os

import pytest

from tests.corpus.paths import judge, judge_all, load, summary

BASE, CASES = load()


@pytest.mark.parametrize('case', CASES, ids=[case['id'] for case in CASES])
def test_a_case_is_decided_as_expected_and_does_no_harm(case, tmp_path):
    verdict = judge(case, BASE, tmp_path.resolve())

    assert verdict.harm == ''
    assert verdict.decided in case['acceptable'], verdict.told


def test_the_working_directory_of_the_process_may_change_in_between(tmp_path, monkeypatch):
    """What the corpus's last case describes, and its lines cannot do."""
    [case] = [case for case in CASES if case['id'] == 'P272']
    monkeypatch.chdir('/')

    verdict = judge(case, BASE, tmp_path.resolve())

    assert verdict.told == 'Wrote cache:x.dat (4 bytes).'
    assert (tmp_path / 'ws/cache/x.dat').exists()
    assert os.getcwd() == '/'


def test_the_summary_counts_what_is_unsafe_and_too_strict():
    lines = summary(judge_all()).split('\n')

    assert lines[1:3] == ['  unsafe: 0', '  too strict: 0.0 %']

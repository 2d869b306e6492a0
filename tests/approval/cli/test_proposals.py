"""What holds for the rules proposed from any log: nothing that was refused runs, and a person reads plain text."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tool_approval.audit.calls import LoggedCall
from tool_approval.cli.proposals import FEWEST, Proposer
from tool_approval.cli.replay import Replayed
from tool_approval.core.config import parse_document
from tool_approval.settings import load_settings, read_settings

from .records import START

SETTINGS = 'sandbox: {paths: {all: {root: ., mode: rw}}}\n'

texts = st.sampled_from(
    ['bob', 'eve', 'no', '', 'a b', '../x', '[redacted]', 'b\x1b', 'б', '{', '"', "'", '#', 'x' * 101]
)
values = texts | st.integers(-2, 2) | st.sampled_from([None, True, 0.5, 1e300, [], {'to': 'bob'}])
names = st.sampled_from(['to', 'text', 'amount', 'code', 'a.b', 'б'])
tools = st.sampled_from(['send', 'no', 'pay*', '[a]', 'run_code', 'a: b', 'x\ny'])
commands = st.sampled_from(['git status', 'git status -s', 'ls', 'pytest', 'touch x', 'ls > x'])
paths = st.sampled_from(['docs/a', 'docs/api/b', 'c', 'docs/.env', '../d', 'docs/../e', 'd\x1b/f'])
payloads = st.one_of(
    st.tuples(tools, st.dictionaries(names, values, max_size=3)),
    st.tuples(st.just('run_shell'), st.fixed_dictionaries({'command': commands})),
    st.tuples(st.sampled_from(['write_file', 'read_file', 'delete']), st.fixed_dictionaries({'path': paths})),
)
fates = st.sampled_from(['approved'] * 5 + ['denied', 'blocked', 'answered', 'changed'])


def call(tool, payload, fate):
    return LoggedCall(
        line=1,
        at=START,
        tool_name=tool,
        payload=payload,
        fate='approved' if fate == 'changed' else fate,
        how='person',
        decided_by=('ada',),
        is_changed=fate == 'changed',
        settings_digest=None,
        answered_s=3.0,
    )


@pytest.fixture
def place(work):
    (work / 'docs/api').mkdir(parents=True)
    (work / 'approvals.yaml').write_text(SETTINGS)
    return work


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(payloads, fates, st.integers(1, FEWEST + 1)), max_size=8))
def test_with_the_proposed_rules_no_refused_call_runs(place, given):
    calls = [call(*of, fate) for of, fate, times in given for _ in range(times)]
    loaded = load_settings(directory=place)
    before = Replayed(loaded, place)
    proposer = Proposer(loaded, SETTINGS, place)

    proposals = proposer.proposals(calls, frozenset())

    after = Replayed(replace(loaded, settings=read_settings(parse_document(proposer.text)[0])), place)
    for each in calls:
        if each.fate != 'approved' or each.is_changed:
            assert after.decide(each) != 'allow' or before.decide(each) == 'allow'
    for proposal in proposals:
        assert len(proposal.evidence) >= FEWEST
        assert all(after.decide(each) == 'allow' for each in proposal.evidence)
        assert all(line.isascii() and line.isprintable() for line in (*proposal.lines, proposal.allows))

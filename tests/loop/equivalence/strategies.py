"""Random scenarios."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from pydantic_ai import ModelRetry, ToolApproved, ToolDenied, exceptions
from pydantic_ai.messages import RetryPromptPart, ToolReturn

from .hosts import TAKES_RETRY_PARTS
from .scenario import Call, Deed, Output, Place, Round, Scenario, Style, Way
from .tools import EXTERNAL, KINDS

words = st.text(max_size=8)
"""What a model is told verbatim."""
paths = st.sampled_from(['a', '', 'b/c', 'ünï'])
metadata = st.sampled_from([None, None, {}, {'a': 'x'}, {'a': 'y', 'b': [1, 2]}, {'c': {'deep': None}}])

valid_args = st.fixed_dictionaries(
    {'path': paths},
    optional={'count': st.sampled_from([0, -9, '5']), 'tags': st.sampled_from([['t', 'u'], []])},
)
"""The type of `count` is coerced."""
invalid_args = st.sampled_from([{'count': 2}, {'path': 'a', 'count': 'many'}, {'path': 3}, {}])
"""Not all of them are invalid for every tool."""


@st.composite
def sent_args(draw: st.DrawFn, tool: str) -> dict[str, Any] | str | None:
    """Arguments as a model sends them: a dictionary, JSON, nothing, or something invalid."""
    form = draw(st.sampled_from(['dictionary', 'JSON', 'dictionary', 'JSON', 'dictionary', 'JSON', 'other']))
    if form != 'other':
        args = draw(valid_args)
        return json.dumps(args) if form == 'JSON' else args
    if tool == EXTERNAL:
        # The host gives the calls of an external tool no second try: text that is no JSON ends any run.
        return draw(st.sampled_from([{}, '{}', '', None]))
    return draw(invalid_args | st.sampled_from(['{"path": ', '', None]))


approvals = st.one_of(
    st.just(True),
    st.builds(ToolApproved, override_args=valid_args),
    st.builds(ToolDenied, words),
    st.builds(ToolApproved),
    st.builds(ToolApproved, override_args=invalid_args),
    st.just(False),
    st.builds(ToolDenied),
    st.just(True),
    st.builds(ToolApproved, override_args=valid_args),
)
results = st.one_of(
    words,
    st.sampled_from([None, False, 0, [], {'kind': 'tool-denied'}, ['listed', {'deep': [1]}]]),
    st.builds(ToolReturn, words, content=words, metadata=metadata),
    st.builds(ModelRetry, words),
    st.builds(exceptions.ToolFailed, words),
    *([st.builds(RetryPromptPart, content=words)] if TAKES_RETRY_PARTS else []),
)
PLACES: tuple[Place, ...] = ('constructor', 'keyword', 'override', 'capability')
STYLES: tuple[Style, ...] = ('async', 'sync', 'sync, awaitable')
DEEDS: tuple[Deed, ...] = (
    'returns',
    'returns nothing',
    'returns with content',
    'asks for a retry',
    'fails',
)


@st.composite
def calls(draw: st.DrawFn, output: Output) -> Call:
    """One call, of any tool."""
    kinds = [
        *dict.fromkeys(KINDS.values()),
        'declared',
        'raised',
        'unheard_of',
        *(['report', 'report'] if output == 'tool' else []),
    ]
    kind = draw(st.sampled_from(kinds))
    tool = draw(st.sampled_from([name for name in KINDS if KINDS[name] == kind] or [kind]))
    return Call(
        tool=tool,
        args=draw(st.sampled_from([{'summary': 'early'}, {'summary': 1}]))
        if tool == 'report'
        else draw(sent_args(tool)),
        deed=draw(st.sampled_from(DEEDS)),
        deferral_metadata=draw(metadata),
        approval=draw(approvals),
        result=draw(results),
        answer_metadata=draw(metadata),
    )


@st.composite
def rounds(draw: st.DrawFn, output: Output) -> Round:
    """One response with calls, and perhaps text beside them."""
    texts = ['', '', 'I will look.', *(['{"summary": "early"}'] if output == 'prompted' else [])]
    return Round(
        calls=tuple(draw(st.lists(calls(output), min_size=1, max_size=4))),
        text=draw(st.sampled_from(texts)),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A whole conversation, and how it is run inline, besides with `run`."""
    output: Output = draw(st.sampled_from(['text', 'tool', 'prompted']))
    scenario = Scenario(
        rounds=tuple(draw(st.lists(rounds(output), min_size=1, max_size=3))),
        output=output,
        end_strategy=draw(st.sampled_from(['graceful', 'early', 'exhaustive'])),
        mode=draw(st.sampled_from(['parallel', 'parallel_ordered_events', 'sequential'])),
        carries_metadata=draw(st.booleans()),
        way='run',
        place=draw(st.sampled_from(PLACES)),
        style=draw(st.sampled_from(STYLES)),
        is_meddled=draw(st.booleans()),
        allows_leaving=draw(st.booleans()),
    )
    # Hypothesis prefers what comes first.
    ways: list[Way] = ['iter, streamed', 'run with events', 'run_stream_events', 'iter']
    if scenario.is_streamable:
        ways = ['run_stream', *ways]
    return replace(scenario, way=draw(st.sampled_from(ways)))

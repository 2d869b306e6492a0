"""The policy combines rules, the tool's own logic and defaults into one verdict."""

import asyncio
import itertools
from fnmatch import fnmatchcase
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.testing import RecordingUI

from tests.tables import table
from tool_approval import (
    ApprovalConfigError,
    ApprovalContext,
    ApprovalController,
    ApprovalPolicy,
    ApprovalRequest,
    ApprovalResult,
    PolicyConfig,
    ToolRule,
    execute_tool,
    requires_approval,
)

BLOCKED_BY_POLICY = ApprovalResult.blocked("The tool 'write' is blocked by policy.")
PRE_APPROVED = ApprovalResult.pre_approved()
ASKS = ApprovalResult.needs_approval()


def judged(policy, *logic, metadata=None, default=None, framework_context=None, name='write'):
    context = ApprovalContext(tool_name=name, args={'path': 'a'}, metadata=metadata or {})
    return asyncio.run(policy.judge(context, logic=logic, framework_context=framework_context, default=default))


def saying(verdict):
    return SimpleNamespace(needs_approval=lambda name, args: verdict)


def configured(approval, description=None):
    return ApprovalPolicy({'write': {'approval': approval, 'description': description}})


@requires_approval(description='Marked')
def marked(path):
    return f'wrote {path}'


def bare(path):
    return f'wrote {path}'


# Which rule decides


@pytest.mark.parametrize(
    ('approval', 'verdict'),
    [('required', ASKS), ('none', PRE_APPROVED), ('blocked', BLOCKED_BY_POLICY), (None, ASKS)],
)
def test_tool_is_configured_by_its_name(approval, verdict):
    assert judged(configured(approval)) == verdict


def test_required_asks_and_none_does_not():
    ui = RecordingUI()
    policy = {'careful': {'approval': 'required'}, 'trusted': {'approval': 'none'}}
    controller = ApprovalController(policy=policy, ui=ui)

    for name in ('careful', 'trusted'):
        asyncio.run(execute_tool(bare, name, {'path': 'a'}, controller, default='required'))

    assert [request.tool_name for request in ui.requests] == ['careful']


@pytest.mark.parametrize('rule', [None, {}, {'approval': None}])
def test_tool_without_an_entry_follows_its_decorator_then_the_default(rule):
    policy = ApprovalPolicy({'write': rule})

    assert judged(policy, marked).description == 'Marked'
    assert judged(policy, bare) == ASKS
    assert judged(policy, bare, default='none') == PRE_APPROVED
    assert judged(ApprovalPolicy({'write': rule}, default='none'), bare) == PRE_APPROVED
    assert judged(ApprovalPolicy({'write': rule}, default='none'), marked).description == 'Marked'


@pytest.mark.parametrize(
    ('policy', 'logic', 'default', 'verdict'),
    [
        (ApprovalPolicy(), [], None, ASKS),
        (ApprovalPolicy({'other': {'approval': 'none'}}), [bare], None, ASKS),
        (ApprovalPolicy(default='none'), [SimpleNamespace(_requires_approval=True)], None, ASKS),
        (ApprovalPolicy(default='none'), [], None, PRE_APPROVED),
        (ApprovalPolicy(default='none'), [], 'required', ASKS),
        (ApprovalPolicy(), [], 'unknown', ASKS),
    ],
    ids=['nothing known', 'another is configured', 'marked', 'default none', 'stricter in code', 'unknown default'],
)
def test_unconfigured_tool_asks_unless_the_default_is_none(policy, logic, default, verdict):
    assert judged(policy, *logic, default=default) == verdict


def test_tool_configured_as_none_is_pre_approved_without_asking():
    ui = RecordingUI()
    controller = ApprovalController(mode='strict', policy={'write': {'approval': 'none'}}, ui=ui)

    result = asyncio.run(execute_tool(bare, 'write', {'path': 'a'}, controller, default='required'))

    assert result == 'wrote a'
    assert ui.requests == []


def test_rule_describes_the_request():
    ui = RecordingUI()
    controller = ApprovalController(policy=configured('required', 'Tool call: write'), ui=ui)

    asyncio.run(execute_tool(bare, 'write', {'path': 'a'}, controller))

    assert [request.description for request in ui.requests] == ['Tool call: write']


# The tool's own logic and the configuration


@pytest.mark.parametrize('approval', ['required', 'none', None])
@pytest.mark.parametrize(
    'own',
    [ApprovalResult.blocked('never'), SimpleNamespace(check_approval=lambda ctx: 1 / 0)],
    ids=['blocks', 'fails'],
)
@pytest.mark.parametrize('position', [0, 1])
def test_block_from_any_source_beats_everything(approval, own, position):
    tool = saying(own) if isinstance(own, ApprovalResult) else own
    logic = [saying(PRE_APPROVED)]
    logic.insert(position, tool)

    assert judged(configured(approval), *logic).is_blocked


def test_tool_blocked_by_the_configuration_is_not_consulted():
    asked = []

    verdict = judged(configured('blocked'), SimpleNamespace(check_approval=asked.append))

    assert verdict == BLOCKED_BY_POLICY
    assert asked == []


OWN = ApprovalResult.needs_approval(
    description='own', payload={'p': 1}, reason='why', bound_to={'cwd': '/'}, group_id='group'
)


@pytest.mark.parametrize('own', [True, {'description': 'own'}, OWN, ApprovalResult.pre_approved(), False])
def test_configured_none_overrides_the_verdict_of_the_tool(own):
    verdict = judged(configured('none'), saying(own))

    # The payload says what the log may show.
    assert verdict == ApprovalResult.pre_approved(own.payload if own is OWN else None)


@pytest.mark.parametrize('own', [False, ApprovalResult.pre_approved()])
def test_configured_as_required_overrides_a_tool_that_pre_approves(own):
    assert judged(configured('required', 'told'), saying(own)) == ApprovalResult.needs_approval(description='told')


@pytest.mark.parametrize('approval', ['required', None])
def test_rule_describes_and_the_tool_supplies_the_rest(approval):
    assert judged(configured(approval), saying(OWN)) == OWN

    described = judged(configured(approval, 'told'), saying(OWN))

    assert described.description == 'told'
    assert (described.payload, described.reason) == (OWN.payload, OWN.reason)
    assert (described.bound_to, described.group_id) == (OWN.bound_to, OWN.group_id)


@pytest.mark.parametrize(
    ('own', 'verdict'),
    [
        (False, PRE_APPROVED),
        (True, ASKS),
        ({'description': 'own'}, ApprovalResult.needs_approval(description='own')),
        (OWN, OWN),
    ],
)
def test_tool_decides_without_configuration(own, verdict):
    assert judged(ApprovalPolicy(), saying(own)) == verdict


def test_the_stricter_of_toolset_and_function_holds_and_the_toolset_describes():
    assert judged(ApprovalPolicy(), saying(False), marked).description == 'Marked'
    assert judged(ApprovalPolicy(), saying(False), saying(False)) == PRE_APPROVED
    assert judged(ApprovalPolicy(), saying({'description': 'own'}), marked).description == 'own'


def test_toolset_that_only_asks_leaves_the_rest_to_the_decorator():
    verdict = judged(ApprovalPolicy(), saying(True), marked)

    assert verdict.description == 'Marked'
    assert verdict.payload is not None


@pytest.mark.parametrize(
    ('stated', 'chosen', 'expected'),
    [
        (None, None, ASKS),
        (None, 'required', ASKS),
        (None, 'none', PRE_APPROVED),
        ('required', None, ASKS),
        ('required', 'none', ASKS),
        ('none', None, PRE_APPROVED),
        ('none', 'none', PRE_APPROVED),
        ('none', 'required', ASKS),
    ],
)
def test_stricter_default_of_policy_and_code_applies_to_a_bare_tool(stated, chosen, expected):
    assert judged(ApprovalPolicy(default=stated), bare, default=chosen) == expected


def test_logic_without_a_verdict_leaves_the_decision_to_the_next():
    assert judged(ApprovalPolicy(), bare, marked).description == 'Marked'


def test_tool_gets_the_context_of_the_framework_and_the_configuration():
    told = []
    tool = SimpleNamespace(needs_approval=lambda name, args, ctx, config: told.append((ctx, config)) or True)
    deps = object()

    judged(configured('required', 'Careful'), tool, framework_context=deps)

    assert told == [(deps, {'write': {'approval': 'required', 'description': 'Careful'}})]


def test_one_configuration_governs_functions_toolsets_and_marked_functions():
    tools = [bare, marked, saying(True), saying(False), object()]

    verdicts = {approval: [judged(configured(approval), tool) for tool in tools] for approval in ('none', 'blocked')}

    assert {each.status for each in verdicts['none']} == {'pre_approved'}
    assert verdicts['blocked'] == [BLOCKED_BY_POLICY] * 5


def test_approval_word_means_the_same_for_every_tool():
    policy = ApprovalPolicy({'shell': {'approval': 'required'}, 'read_file': {'approval': 'none'}, 'custom': None})

    verdicts = [judged(policy, name=name).status for name in ('shell', 'read_file', 'custom')]

    assert verdicts == ['needs_approval', 'pre_approved', 'needs_approval']


# Globs


@table(
    ('tools', 'approval'),
    [
        ({'write': 'none', '*': 'required'}, 'none'),
        ({'wr*': 'required', 'w*': 'none'}, 'required'),
        ({'wr*': 'none', '*': 'required'}, 'none'),
        ({'wr*': 'none', '*te': 'required'}, 'required'),
        ({'writ?': 'none', 'writ*': 'none', '*rite': 'required'}, 'required'),
        ({'w[a-z]i*': 'none', 'w*': 'required'}, 'none'),
        ({'w[abcdefghijklmnopqr]*': 'none', 'wr*': 'required'}, 'required'),
        ({'write': 'none', '*': 'blocked'}, 'blocked'),
        ({'write': 'blocked', '*': 'none'}, 'blocked'),
        ({'write': None, 'w*': 'none'}, 'none'),
        ({'wri*': None, 'w*': 'none'}, 'none'),
        ({'write': None}, None),
        ({'Write': 'none', 'WRITE*': 'none', 'rite': 'none', 'writ': 'none', 'write?': 'none'}, None),
        ({'[!v]rite': 'none'}, 'none'),
        ({'[': 'none', '[w': 'none', '[]': 'none'}, None),
    ],
)
def test_weightiest_rule_decides_in_any_order(tools, approval):
    for order in itertools.permutations(tools):
        policy = ApprovalPolicy({name: {'approval': tools[name]} for name in order})

        assert policy.rule_for('write').approval == approval


@pytest.mark.parametrize(
    ('tools', 'description'),
    [
        ({'write': ('required', None), '*': ('required', 'star')}, None),
        ({'write': (None, None), '*': ('required', 'star')}, 'star'),
        ({'write': (None, 'own'), '*': ('required', 'star')}, 'own'),
        ({'write': ('required', 'own'), '*': ('required', 'star')}, 'own'),
        ({'wr*': (None, 'glob'), '*': ('required', 'star')}, 'glob'),
        ({'wr*': (None, 'glob'), '*': (None, 'star')}, 'glob'),
        ({'w*': ('required', 'left'), '*e': ('required', 'right')}, 'left'),
    ],
)
def test_description_comes_from_the_deciding_rule_or_a_weightier_one(tools, description):
    for order in itertools.permutations(tools):
        policy = ApprovalPolicy(
            {name: dict(zip(('approval', 'description'), tools[name], strict=True)) for name in order}
        )

        assert policy.rule_for('write').description == description


def test_a_name_that_only_begins_or_ends_like_a_blocked_one_is_another():
    policy = ApprovalPolicy({'rm': {'approval': 'blocked'}})

    assert [policy.rule_for(name).approval for name in ('rm', 'rm ', 'rm\n', 'RM', 'rmdir')] == ['blocked', *[None] * 4]


def test_a_glob_matches_across_lines():
    policy = ApprovalPolicy({'rm*': {'approval': 'blocked'}})

    assert policy.rule_for('rm\nharmless').approval == 'blocked'


patterns = st.text('ab*?', min_size=1, max_size=4) | st.sampled_from(
    ['[ab]', '[!a]b', 'a[ab]*', '*', 'ab', 'a', '[', '[]']
)
rules = st.dictionaries(patterns, st.sampled_from(['required', 'none', 'blocked', None]), max_size=6)
names = st.text('ab', min_size=1, max_size=4) | st.sampled_from(['[', '[]', '*', 'a*', 'c'])
STRICTNESS = {'none': 0, 'required': 1}


def literal_characters(pattern):
    """Counted by hand: the classes among `patterns` are known."""
    for characters in ('[ab]', '[!a]'):
        pattern = pattern.replace(characters, '')
    return len(pattern.replace('*', '').replace('?', ''))


def expected(tools, name):
    """The specification's sentence, written out."""
    matching = {
        pattern: approval
        for pattern, approval in tools.items()
        if approval is not None and (pattern == name or fnmatchcase(name, pattern))
    }
    if 'blocked' in matching.values():
        return 'blocked'
    if name in matching:
        return matching[name]
    most = max(map(literal_characters, matching), default=0)
    candidates = [approval for pattern, approval in matching.items() if literal_characters(pattern) == most]
    return max(candidates, key=STRICTNESS.__getitem__, default=None)


@settings(max_examples=200, deadline=None)
@given(rules, names, st.randoms(use_true_random=False))
def test_for_any_rules_blocked_wins_exact_beats_glob_and_a_tie_goes_to_the_stricter(tools, name, random):
    order = list(tools)
    random.shuffle(order)

    policy = ApprovalPolicy({pattern: {'approval': tools[pattern]} for pattern in order})

    assert policy.rule_for(name).approval == expected(tools, name)
    assert policy.rule_for(name) == ApprovalPolicy({key: {'approval': tools[key]} for key in tools}).rule_for(name)


@settings(deadline=None)
@given(rules, names, st.sampled_from([True, False, None]))
def test_for_any_rules_a_blocked_tool_stays_blocked_whatever_it_says(tools, name, own):
    policy = ApprovalPolicy(
        {**{pattern: {'approval': approval} for pattern, approval in tools.items()}, name: {'approval': 'blocked'}}
    )

    assert judged(policy, saying(own), name=name).is_blocked


def test_names_that_a_model_invents_do_not_fill_the_memory():
    policy = ApprovalPolicy({'rm': {'approval': 'blocked'}})

    for number in range(10_000):
        policy.rule_for(f'invented_{number}')

    assert policy._rule_for.cache_info().currsize <= 4096
    assert policy.rule_for('rm').approval == 'blocked'


# Requests that were raised already


def raised(metadata, tools=None, **policy):
    request = ApprovalRequest(tool_name='write', args={'path': 'a'}, metadata=metadata)
    return ApprovalPolicy(tools, **policy).judge_request(request)


def test_tool_that_blocks_itself_is_blocked_without_asking():
    ui = RecordingUI()
    request = ApprovalRequest(
        tool_name='write', metadata={'approval_policy': 'blocked', 'approval_reason': 'read-only'}
    )

    decision = asyncio.run(ApprovalController(mode='approve_all', ui=ui).request_approval(request))

    assert (decision.approved, decision.note, decision.decided_by) == (False, 'read-only', ('policy',))
    assert ui.requests == []


@pytest.mark.parametrize('tools', [None, {'write': {'approval': 'none'}}, {'write': {'approval': 'required'}}])
def test_configuration_cannot_allow_a_call_that_the_tool_blocks(tools):
    assert raised({'approval_policy': 'blocked'}, tools) == ApprovalResult.blocked(
        "The tool 'write' blocked this call."
    )


@pytest.mark.parametrize('reason', ['', None, 1, ['a']])
def test_reason_that_is_not_a_text_is_left_out(reason):
    verdict = raised({'approval_policy': 'blocked', 'approval_reason': reason})

    assert verdict.reason == "The tool 'write' blocked this call."


def test_metadata_of_the_framework_may_block():
    verdict = judged(
        configured('none'), saying(False), metadata={'approval_policy': 'blocked', 'approval_reason': 'no'}
    )

    assert verdict == ApprovalResult.blocked('no')


@pytest.mark.parametrize('approval_policy', ['needs_approval', 'pre_approved', 'none', None, True])
def test_metadata_never_approves(approval_policy):
    assert raised({'approval_policy': approval_policy, 'approval_description': 'x', 'worker': 'w'}) == ASKS


@pytest.mark.parametrize(
    ('approval', 'verdict'),
    [
        ('required', ApprovalResult.needs_approval(description='told')),
        ('none', PRE_APPROVED),
        ('blocked', BLOCKED_BY_POLICY),
        (None, ApprovalResult.needs_approval(description='told')),
    ],
)
def test_configuration_applies_to_requests_raised_by_a_tool(approval, verdict):
    assert raised({}, {'write': {'approval': approval, 'description': 'told'}}) == verdict


def test_default_does_not_skip_a_request_of_the_tool():
    assert raised({}, default='none') == ASKS


GRANTS = {'container': ['fs.write', 'net.external'], 'vm': ['net.external']}


@pytest.mark.parametrize(
    ('metadata', 'is_granted'),
    [
        ({'isolation_profile': 'container', 'missing_capabilities': ['fs.write']}, True),
        ({'isolation_profile': 'container', 'missing_capabilities': ('fs.write', 'net.external')}, True),
        ({'isolation_profile': 'vm', 'missing_capabilities': ['net.external', 'fs.write']}, False),
        ({'isolation_profile': 'unisolated', 'missing_capabilities': ['fs.write']}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': []}, False),
        ({'isolation_profile': 'container', 'required_capabilities': ['fs.write']}, True),
        ({'isolation_profile': 'vm', 'required_capabilities': ['fs.write', 'net.external']}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': ['fs.write', 1]}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': 'fs.write'}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': {'fs.write': 1}}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': [['fs.write']]}, False),
        ({'isolation_profile': ['container'], 'missing_capabilities': ['fs.write']}, False),
        ({'missing_capabilities': ['fs.write']}, False),
        ({'isolation_profile': 'container', 'missing_capabilities': ['fs.write'], 'granted_capabilities': []}, True),
        (
            {'isolation_profile': 'vm', 'missing_capabilities': ['fs.write'], 'granted_capabilities': ['fs.write']},
            False,
        ),
    ],
)
def test_isolation_profile_grants_exactly_the_capabilities_it_lists(metadata, is_granted):
    verdict = raised(metadata, auto_grant=GRANTS)

    assert verdict == (PRE_APPROVED if is_granted else ASKS)


def test_nothing_is_granted_without_auto_grant():
    assert raised({'isolation_profile': 'container', 'missing_capabilities': ['fs.write']}) == ASKS


@pytest.mark.parametrize(('approval', 'status'), [('required', 'needs_approval'), ('blocked', 'blocked')])
def test_explicit_configuration_beats_a_grant(approval, status):
    metadata = {'isolation_profile': 'container', 'missing_capabilities': ['fs.write']}

    verdict = raised(metadata, {'write': {'approval': approval}}, auto_grant=GRANTS)

    assert verdict.status == status


def test_grant_never_beats_a_block_of_the_tool():
    metadata = {'approval_policy': 'blocked', 'isolation_profile': 'container', 'missing_capabilities': ['fs.write']}

    assert raised(metadata, auto_grant=GRANTS).is_blocked


# Ways to configure


def test_a_policy_may_be_built_of_rules_mappings_and_tuples():
    policy = ApprovalPolicy(
        MappingProxyType({'a': ToolRule(approval='none'), 'b': MappingProxyType({'approval': 'blocked'}), 'c': None}),
        auto_grant={'container': ('fs.write',), 'vm': frozenset(['net'])},
    )

    assert policy.config == PolicyConfig(
        tools={'a': ToolRule(approval='none'), 'b': ToolRule(approval='blocked'), 'c': ToolRule()},
        auto_grant={'container': ['fs.write'], 'vm': ['net']},
    )


def test_a_policy_may_be_of_a_configuration_that_was_read_before():
    config = PolicyConfig(tools={'rm': ToolRule(approval='blocked')})

    policy = ApprovalPolicy.from_config(config)

    assert policy.config is config
    assert policy.rule_for('rm').approval == 'blocked'


@pytest.mark.parametrize(
    ('arguments', 'key'),
    [
        ({'tools': {'rm': {'aproval': 'none'}}}, 'tools.rm.aproval'),
        ({'tools': {'rm': {'approval': 'never'}}}, 'tools.rm.approval'),
        ({'tools': {'rm': 'blocked'}}, 'tools.rm'),
        ({'tools': {1: {}}}, 'tools.1'),
        ({'tools': ['rm']}, 'tools'),
        ({'tools': {'tools': {'rm': {'approval': 'none'}}}}, 'tools.tools.rm'),
        ({'default': 'blocked'}, 'default'),
        ({'auto_grant': {'vm': 'net'}}, 'auto_grant.vm'),
        ({'auto_grant': {'vm': None}}, 'auto_grant.vm'),
        ({'auto_grant': {'vm': [1]}}, 'auto_grant.vm.0'),
    ],
)
def test_a_mistake_in_code_names_the_key(arguments, key):
    with pytest.raises(ApprovalConfigError) as mistake:
        ApprovalPolicy(**arguments)

    assert mistake.value.key == key
    assert (mistake.value.source, mistake.value.line) == (None, None)


@table('approval', [None, 'required', 'none', 'blocked'])
@table('own', [None, PRE_APPROVED, ASKS, ApprovalResult.blocked('Not here.')])
@table('default', [None, 'required', 'none'])
def test_known_verdict_counts_as_much_as_one_that_is_asked_for(approval, own, default):
    policy = ApprovalPolicy({'write': {'approval': approval}}, default=default)

    assert policy.settle('write', {}, own) == judged(policy, *([] if own is None else [saying(own)]))

import asyncio

import pytest
from tool_approval.inbox import ApproverRule, Escalation, NotAnApprover
from tool_approval.ui.slack.actions import People

from tool_approval import ApprovalRequest

from .test_blocks import entry_of

OPS = ApproverRule(users=frozenset({'U0ADA'}), groups=frozenset({'S0OPS', 'staff'}))


class Channel:
    def __init__(self, **groups):
        self.groups = groups
        self.asked = []

    async def members(self, group):
        self.asked.append(group)
        return frozenset(self.groups[group])


def approver(user='U0ADA', *, channel, rule=OPS, ids=None, **content):
    people = People(channel, rule, ids)
    return asyncio.run(people.approver(user, None, entry_of(ApprovalRequest(tool_name='t'), **content)))


def test_user_listed_by_id_is_accepted_without_a_call_to_slack():
    channel = Channel()

    assert approver(channel=channel).id == 'U0ADA'
    assert channel.asked == []


def test_member_of_a_listed_group_is_accepted_and_only_user_groups_are_looked_up():
    channel = Channel(S0OPS={'U0BOB'})

    assert approver('U0BOB', channel=channel).groups == {'S0OPS'}
    assert channel.asked == ['S0OPS']


def test_user_in_no_listed_group_is_refused():
    with pytest.raises(NotAnApprover, match='only approvers listed for this channel may answer'):
        approver('U0EVE', channel=Channel(S0OPS={'U0BOB'}))


def test_the_groups_of_the_request_count():
    channel = Channel(S0MAIL={'U0ADA'})
    rules = (ApproverRule(groups=frozenset({'S0MAIL'})),)

    assert approver(channel=channel, approvers=rules).groups == {'S0MAIL'}


def test_the_groups_that_are_asked_later_count():
    later = Escalation(after='30m', to=ApproverRule(groups=frozenset({'S0LATER'})))
    channel = Channel(S0LATER={'U0ADA'})

    asked_long_ago = approver(channel=channel, approvers=(ApproverRule(users=frozenset({'zoe'}), escalate=later),))

    assert asked_long_ago.groups == {'S0LATER'}


def test_person_with_an_id_elsewhere_cannot_approve_their_own_request():
    ids = {'U0ADA': 'ada'}

    assert approver(channel=Channel(), ids=ids).id == 'ada'
    with pytest.raises(NotAnApprover, match='their own request'):
        approver(channel=Channel(), ids=ids, requester='ada', forbid_self_approval=True)


def test_listed_user_without_a_mapped_id_is_refused():
    with pytest.raises(NotAnApprover, match='only approvers listed for this channel may answer'):
        approver(channel=Channel(), ids={'U0BOB': 'bob'})


def test_group_membership_is_cached_for_a_minute():
    seconds, channel = 0.0, Channel(S0OPS={'U0BOB'})
    people = People(channel, OPS, None, lambda: seconds)
    entry = entry_of(ApprovalRequest(tool_name='t'))

    async def ask():
        return await people.approver('U0BOB', None, entry)

    asyncio.run(ask())
    seconds = 59.9
    asyncio.run(ask())
    assert len(channel.asked) == 1
    channel.groups = {'S0OPS': set()}
    seconds = 60
    with pytest.raises(NotAnApprover):
        asyncio.run(ask())

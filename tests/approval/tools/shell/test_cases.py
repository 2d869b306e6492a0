"""Every sample command is decided as its group says, whatever way it takes to what the rules name."""

import pytest

from tests.tables import table

from .cases import FILES, cases


@pytest.mark.parametrize('file', FILES)
def test_command_is_decided_as_its_group_says(file):
    @table('case', cases(file))
    def is_decided(case):
        expected, decision = case.expected, case.decision()

        assert decision in expected

    is_decided()

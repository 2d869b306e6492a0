"""What can go wrong between the bot and Slack.

```
ApprovalError
├── SlackUnavailable    Slack cannot be reached, or does not let the bot in; it is tried again
└── SlackRefused        Slack takes this one thing never: it is not tried again
```
"""

from __future__ import annotations

from tool_approval.core.errors import ApprovalError


class SlackUnavailable(ApprovalError):
    """Slack cannot be reached, is too busy, or does not let the bot in. What was asked may have been done or not."""

    def __init__(self, method: str, problem: str) -> None:
        """Name the method of Slack's Web API, and what was wrong: Slack's word for it, where it said one."""
        self.method = method
        self.problem = problem
        super().__init__(f'Slack could not be asked for {method}: {problem}')


class SlackRefused(ApprovalError):
    """Slack does not take this message, and never will. Nothing was done."""

    def __init__(self, method: str, problem: str) -> None:
        """Name the method of Slack's Web API, and Slack's word for what was wrong."""
        self.method = method
        self.problem = problem
        super().__init__(f'Slack has refused {method}: {problem}')

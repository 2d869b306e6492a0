"""Judges of small configurations, for the tests of this folder."""

from tool_approval.tools.shell import ShellConfig
from tool_approval.tools.shell.judge import ShellJudge


def unasked(*patterns):
    """Rules that let these run without asking."""
    return [{'pattern': pattern, 'approval': False} for pattern in patterns]


def blocked(*patterns):
    """Rules that block these."""
    return [{'pattern': pattern, 'allowed': False} for pattern in patterns]


def judge(*rules, default=None, **options):
    """A judge in `/here`."""
    config = ShellConfig.model_validate({'rules': list(rules), 'default': default or {}})
    return ShellJudge(config, cwd='/here', **options)


def decision(command, *rules, default=None, **options):
    """What is decided of one command."""
    return judge(*rules, default=default, **options).explain(command).decision


OPEN = {'approval': False}
"""The default to run commands unasked."""

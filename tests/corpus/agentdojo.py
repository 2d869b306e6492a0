"""Names of the tools that the tasks of AgentDojo call, in the benchmark's own solutions.

They are from AgentDojo's tasks of version 1.2.2, by Edoardo Debenedetti and others, under the MIT licence in
`agentdojo-LICENSE`. The solutions were made without a model: the user's tasks, and the tasks that an attacker injects
into what a tool returns. Tasks without calls are left out.
"""

import json
from pathlib import Path


def tasks(kind: str) -> list[list[str]]:
    """Return the tools of each task, in the order of the calls. `kind` is `user` or `injection`."""
    given = json.loads(Path(__file__).with_suffix('.json').read_text())
    return [task['calls'] for task in given if task['kind'] == kind]

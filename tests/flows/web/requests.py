"""Requests of the runs in these stories."""

from typing import Any

from tool_approval import ApprovalPresentation, ApprovalRequest, LineageEntry, RememberOption

DIFF = """\
--- notes/todo.txt
+++ notes/todo.txt
@@ -1,4 +1,4 @@
 Monday
-buy milk
+buy oats
 call Ann
-water the fern
+water the fern, and the fig
"""


def request(tool_name: str = 'delete_file', **fields: Any) -> ApprovalRequest:
    given: dict[str, Any] = {'args': {'path': 'notes/old.txt'}, 'run_id': 'run-1', 'metadata': {'caller': 'gardener'}}
    return ApprovalRequest(tool_name=tool_name, **{**given, **fields})


def edit(**fields: Any) -> ApprovalRequest:
    args = {'path': 'notes/todo.txt', 'old_text': 'buy milk', 'new_text': 'buy oats'}
    shown = ApprovalPresentation(type='diff', content=DIFF, metadata={'path': 'notes/todo.txt'})
    return request('edit_file', args=args, presentation=shown, description='Edit notes/todo.txt', **fields)


def command(text: str = 'git push --force origin main', **fields: Any) -> ApprovalRequest:
    shown = ApprovalPresentation(type='command', content=text, metadata={'cwd': '/home/ada/garden'})
    option = RememberOption(
        kind='program', label='every "git push" in /home/ada/garden', payload={'program': 'git push'}
    )
    return request(
        'run_shell',
        args={'command': text},
        presentation=shown,
        reason='No rule matches `git push`.',
        remember_options=(option,),
        **fields,
    )


def nested(**fields: Any) -> ApprovalRequest:
    level = LineageEntry(agent_name='planner', run_id='run-0', tool_name='delegate', tool_call_id='c0')
    return request('send_mail', args={'to': 'ann@example.com', 'subject': 'The fern'}, lineage=(level,), **fields)


def structured(**fields: Any) -> ApprovalRequest:
    args = {'table': 'plants', 'rows': [{'name': 'fern', 'water': 3}, {'name': 'fig', 'water': 2}], 'dry_run': False}
    return request('insert_rows', args=args, **fields)

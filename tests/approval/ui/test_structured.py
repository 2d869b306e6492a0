"""Every UI lays out a structured presentation in the same way."""

import json

from tool_approval.display import display
from tool_approval.display.fenced import drawn
from tool_approval.ui.terminal import render_request
from tool_approval.ui.web.cards import content_of

from tests.approval.ui.web.parts import text_of
from tool_approval import ApprovalPresentation, ApprovalRequest

CALL = {'url': 'https://api.example/v1', 'rows': [{'name': 'fern', 'water': 3}, []], 'dry_run': False, 'at': 1.5}
TREE = [
    'url: "https://api.example/v1"',
    'rows:',
    '  1.',
    '    name: "fern"',
    '    water: 3',
    '  2. []',
    'dry_run: false',
    'at: 1.5',
]


def test_terminal_page_and_slack_lay_out_structured_content_alike() -> None:
    request = ApprovalRequest(
        tool_name='call_api', presentation=ApprovalPresentation(type='structured', content=json.dumps(CALL))
    )

    terminal = render_request(request, color=False)
    page = text_of(f'<main{content_of(display(request).lines, "it")}')
    slack = '\n'.join(map(str, drawn(display(request).lines)))

    for line in TREE:
        assert f'┊ {line}\n' in terminal
        assert line.strip() in page
        assert line in slack

"""Sample screens are drawn as `screens.toml` shows them."""

import tomllib
from pathlib import Path

from tool_approval.ui.terminal import render_request

from tests.tables import table
from tool_approval import ApprovalRequest

DATA = tomllib.loads(Path(__file__).with_name('screens.toml').read_text())


@table('screen', DATA['screen'])
def test_request_is_drawn_as_its_screen_shows(screen: dict) -> None:
    request = ApprovalRequest.model_validate(DATA['request'][screen['request']])

    drawn = render_request(request, width=screen.get('width', 80), color=False)

    assert drawn == f'{screen["shown"]} '

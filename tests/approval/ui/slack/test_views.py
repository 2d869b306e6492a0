from functools import cache

from tool_approval.ui.slack.blocks import full_view, note_form

from tool_approval import ApprovalRequest

from .slack_server import buttons_of, shown
from .test_blocks import entry_of

LONG = entry_of(ApprovalRequest(tool_name='t', args={'text': '\n'.join(f'line {n:05}' for n in range(9000))}))


@cache
def pages():
    page, seen = 0, []
    while True:
        view = full_view(LONG, page)
        seen.append(view)
        following = buttons_of(view).get('next_page')
        if following is None:
            return seen
        page = int(following.rpartition('.')[2])


def test_the_pages_together_show_everything():
    told = ''.join(shown(view['blocks']) for view in pages())

    assert all(f'line {number:05}' in told for number in range(9000))


def test_each_page_leads_to_its_neighbours():
    seen = pages()

    assert len(seen) > 2
    assert [list(buttons_of(view)) for view in (seen[0], seen[1], seen[-1])] == [
        ['next_page'],
        ['previous_page', 'next_page'],
        ['previous_page'],
    ]


def test_a_page_beyond_the_last_is_the_last():
    assert full_view(LONG, 99_999) == pages()[-1]


def test_view_of_one_page_has_no_buttons():
    assert buttons_of(full_view(entry_of(ApprovalRequest(tool_name='t')), 0)) == {}


def test_note_form_carries_the_id_and_the_digest():
    assert note_form(LONG)['private_metadata'] == f'{LONG.id}.{LONG.digest}.0'

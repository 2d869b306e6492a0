"""The page and another channel, such as a terminal, answer the same request at the same moment."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tool_approval.inbox import AlreadySettled

from .parts import BOB


def test_page_or_terminal_wins_and_the_other_is_refused(desk):
    for _ in range(10):
        entry = desk.post()
        token = desk.token()
        both = threading.Barrier(2)

        def by_page(entry=entry, token=token, both=both):
            both.wait(20)
            body, headers = {'digest': entry.digest, 'approved': True}, {'x-csrf-token': token}
            return desk.client.post(f'/api/v1/requests/{entry.id}/decision', json=body, headers=headers)

        def by_terminal(entry=entry, both=both):
            both.wait(20)
            try:
                return desk.settle(entry, BOB, approved=False)
            except AlreadySettled as error:
                return error

        with ThreadPoolExecutor() as pool:
            page, terminal = pool.submit(by_page), pool.submit(by_terminal)
            answered, said = page.result(60), terminal.result(60)

        if answered.status_code == 200:
            assert isinstance(said, AlreadySettled)
            assert said.by == 'ada'
            assert desk.now(entry).state == 'approved'
        else:
            assert answered.status_code == 409
            assert "denied by 'bob'" in answered.json()['error']['message']
            assert desk.now(entry).state == 'denied'

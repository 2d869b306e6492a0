"""The trusted files are read without pydantic only where that makes no difference."""

import json
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tool_approval.settings import TrustStore
from tool_approval.settings.plain_trust import plain_digests
from tool_approval.settings.trusted_files import TrustedFiles

from tests.tables import table

DIGEST = 'a' * 64
FILE = {'path': '/w/approvals.yaml', 'digest': DIGEST, 'trusted_at': '2026-11-22T10:00:00Z'}


def with_models(text):
    try:
        return [(each.path, each.digest) for each in TrustedFiles.model_validate_json(text).files]
    except ValidationError:
        return 'a mistake'


def contents(**changes):
    return json.dumps({'version': 1, 'files': [FILE], **changes}).encode()


def test_what_the_store_writes_is_certain(tmp_path):
    for number, now in enumerate([datetime(2026, 11, 30, 10, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 678, UTC)]):
        TrustStore(tmp_path / 'state/trusted.json', now=lambda now=now: now).trust(
            tmp_path / f'work/{number}.yaml', DIGEST
        )
    text = (tmp_path / 'state/trusted.json').read_bytes()

    digests = plain_digests(text)

    assert digests == with_models(text)
    assert digests == [(str(tmp_path / f'work/{number}.yaml'), DIGEST) for number in range(2)]


@table(
    'text',
    [
        b'',
        b'\xff',
        b'[' * 100_000,
        b'[]',
        contents(version=2),
        contents(version=True),
        contents(version='1'),
        contents(files={}),
        contents(files=[[]]),
        contents(more=1),
        b'{"version": 1}',
        *(
            contents(files=[{**FILE, **change}])
            for change in (
                {'path': 1},
                {'path': '\ud800'},
                {'digest': DIGEST.upper()},
                {'digest': f'{DIGEST}\n'},
                {'trusted_at': '2026-11-22T10:00:00'},
                {'trusted_at': '2026-02-30T10:00:00Z'},
                {'trusted_at': 1},
                {'more': 1},
            )
        ),
    ],
)
def test_of_anything_else_nothing_is_certain(text):
    assert plain_digests(text) is None


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            'path': st.text(max_size=3),
            'digest': st.text('abf09G\n', min_size=63, max_size=65),
            'trusted_at': st.one_of(
                st.datetimes(timezones=st.just(UTC)).map(lambda time: time.isoformat().replace('+00:00', 'Z')),
                st.text('0123456789-:.TZ+٢', max_size=25),
            ),
        },
    )
)
def test_what_is_certain_is_what_the_models_read(change):
    text = contents(files=[{**FILE, **change}])

    digests = plain_digests(text)

    assert digests is None or digests == with_models(text)


def test_a_store_written_by_hand_in_another_form_is_read_all_the_same(tmp_path):
    policy = tmp_path / 'work/approvals.yaml'
    text = contents(files=[{**FILE, 'path': str(policy), 'trusted_at': '2026-11-30T10:00:00+01:00'}])
    store = TrustStore(tmp_path / 'trusted.json')
    store.path.touch(mode=0o600)
    store.path.write_bytes(text)

    is_trusted = store.is_trusted(policy, DIGEST)

    assert (plain_digests(text), is_trusted) == (None, True)

"""The fast way of escaping a text says the same as looking at each character."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tool_approval.display import escape_line

CHARS = st.one_of(
    st.sampled_from('<U+"a\t\u0301\u0323\u1112\u119e\u11ab\u0915\u093f\u3042\u3099\u00e9\u200b '), st.characters()
)


@settings(deadline=None)
@given(text=st.text(CHARS, max_size=30), ascii_only=st.booleans(), also=st.sampled_from(['', '"', '<']))
def test_line_is_escaped_alike_whatever_follows(text: str, ascii_only: bool, also: str) -> None:
    # A control at the end leaves no text to the fast way.
    slowly = escape_line(f'{text}\x00', ascii_only=ascii_only, also=also)

    assert slowly == f'{escape_line(text, ascii_only=ascii_only, also=also)}<U+0000>'


def test_less_than_sign_is_escaped_only_before_an_escape() -> None:
    assert escape_line('\u0436 < 2') == '\u0436 < 2'
    assert escape_line('\u0436 <U+') == '\u0436 <U+003C>U+'
    assert escape_line('\u0436 <', also='<') == '\u0436 <U+003C>'

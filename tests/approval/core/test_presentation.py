"""Presentations are shortened, and say how much is missing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tool_approval import ApprovalPresentation, truncate_for_display


@pytest.mark.parametrize('kind', ['text', 'diff', 'file_content', 'command', 'structured'])
def test_presentation_has_a_known_type_and_is_serialisable(kind):
    presentation = ApprovalPresentation(type=kind, content='ls', language='sh', metadata={'cwd': 'notes'})

    read = ApprovalPresentation.model_validate_json(presentation.model_dump_json())

    assert read == presentation


def test_presentation_with_an_unknown_type_or_field_is_refused():
    with pytest.raises(ValidationError):
        ApprovalPresentation(type='html', content='')
    with pytest.raises(ValidationError):
        ApprovalPresentation(type='text', content='', colour='red')


def test_a_presentation_cannot_be_changed():
    presentation = ApprovalPresentation(type='text', content='harmless')

    with pytest.raises(ValidationError):
        presentation.content = 'else'


@pytest.mark.parametrize(
    ('content', 'shown'),
    [
        ('', ''),
        ('one', 'one'),
        ('1\n2\n3', '1\n2\n3'),
        ('1\n2\n3\n', '1\n2\n3\n'),
        ('1\n2\n3\n4', '1\n2\n3\n... [1 more line]'),
        ('1\n2\n3\n4\n5\n', '1\n2\n3\n... [2 more lines]'),
        ('1\n2\n3\n\n', '1\n2\n3\n... [1 more line]'),
        ('123456789', '123456789'),
        ('1234567890', '123456789\n... [1 more character]'),
        ('123456789\n', '123456789\n'),
        ('x' * 100, 'xxxxxxxxx\n... [91 more characters]'),
        ('12345\n78901', '12345\n789\n... [2 more characters]'),
        ('12345\n78901\n1\n2', '12345\n789\n... [2 more lines, 6 more characters]'),
    ],
)
def test_long_content_is_cut_and_states_how_much_is_missing(content, shown):
    assert truncate_for_display(content, max_lines=3, max_chars=9) == shown


def test_fifty_lines_are_shown_by_default():
    fifty = '\n'.join(map(str, range(50)))

    assert truncate_for_display(fifty) == fifty
    assert truncate_for_display(f'{fifty}\n50\n51') == f'{fifty}\n... [2 more lines]'


def test_one_line_as_long_as_a_file_is_cut():
    assert len(truncate_for_display('x' * 1_000_000)) < 8100


@settings(deadline=None)
@given(st.text('ab\n', max_size=40), st.integers(1, 6), st.integers(1, 12))
def test_truncated_text_is_the_beginning_and_within_the_limits(content, max_lines, max_chars):
    shown = truncate_for_display(content, max_lines, max_chars)

    body, mark, _ = shown.rpartition('\n... [')
    if mark:
        assert content.startswith(body)
        assert len(body) <= max_chars
        assert len(body.split('\n')) <= max_lines
        assert len(body) < len(content)
    else:
        assert shown == content
        assert len(content.removesuffix('\n')) <= max_chars
        assert len(content.removesuffix('\n').split('\n')) <= max_lines


@pytest.mark.parametrize('limits', [{'max_lines': 0}, {'max_chars': 0}, {'max_lines': -1}])
def test_a_limit_below_one_is_an_error(limits):
    with pytest.raises(ValueError, match='at least 1'):
        truncate_for_display('x', **limits)


def test_whole_text_is_kept_for_a_pager():
    content = '\n'.join('abcdef')

    presentation = ApprovalPresentation.of('diff', content, max_lines=2, language='diff', path='a.txt')

    assert presentation.content == 'a\nb\n... [4 more lines]'
    assert presentation.metadata == {'path': 'a.txt', 'full_content': content}
    assert presentation.language == 'diff'


def test_text_that_was_not_shortened_is_not_kept_twice():
    presentation = ApprovalPresentation.of('text', 'short')

    assert presentation.content == 'short'
    assert presentation.metadata == {}


@pytest.mark.parametrize(
    ('content', 'kind'),
    [
        (b'\x89PNG\r\n\x1a\n\x1b[31m', 'image/png'),
        (b'\xff\xd8\xff\xe0', 'image/jpeg'),
        (b'GIF89a', 'image/gif'),
        (b'%PDF-1.7', 'application/pdf'),
        (b'PK\x03\x04', 'application/zip'),
        (b'\x1f\x8b\x08', 'application/gzip'),
        (b'\x7fELF\x02', 'application/x-elf'),
        (b'\x1b]0;title\x07', 'application/octet-stream'),
        (b'', 'application/octet-stream'),
    ],
)
def test_binary_content_is_shown_as_kind_and_size_only(content, kind):
    presentation = ApprovalPresentation.of('file_content', content)

    assert presentation.content == f'Binary content: {kind} ({len(content)} bytes)'
    assert presentation.content.isprintable()
    assert presentation.metadata == {}

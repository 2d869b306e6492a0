"""Upstream moves: each change that has lost its place says where, and then there is no patch at all."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from maintainers.upstream.changes import CHANGES, changed
from maintainers.upstream.patch import write_patch
from maintainers.upstream.places import PlaceChanged
from maintainers.upstream.release import FOLDER

pytestmark = [pytest.mark.untraced, pytest.mark.thorough]

Moved = Callable[[str, Callable[[str], str]], Path]


@pytest.mark.parametrize('file', CHANGES)
def test_a_file_that_has_nothing_of_what_is_looked_for_is_named(file: str):
    with pytest.raises(PlaceChanged) as raised:
        changed(file, 'import sys\n')

    assert str(raised.value).startswith(f'pydantic_ai/{file}: ')
    assert raised.value.place


@pytest.mark.parametrize('file', CHANGES)
def test_a_file_that_has_the_change_already_is_refused(file: str, files: dict[str, str]):
    once = files[f'{FOLDER}/pydantic_ai/{file}']

    with pytest.raises(PlaceChanged, match='already'):
        changed(file, once)


def replaced(old: str, new: str, *, times: int = 1) -> Callable[[str], str]:
    return lambda text: re.sub(old, new, text, count=times)


MOVES: list[tuple[str, Callable[[str], str], str]] = [
    # gone
    ('agent/wrapper.py', replaced(r'class WrapperAgent', 'class Wrapper'), r'WrapperAgent\.iter: .* 0 found'),
    ('agent/abstract.py', replaced(r'def run_stream_events\(', 'def stream_events(', times=9), 'run_stream_events'),
    (
        'tool_manager.py',
        replaced(r'def _make_validation_failure\(', 'def _failed('),
        'method `_make_validation_failure`',
    ),
    ('tool_manager.py', replaced(r'except ToolFailed as e', 'except ValueError as e', times=99), '_raw_execute: `try`'),
    (
        '_tool_execution.py',
        replaced(r'and self\.deferred_calls:', 'and self.deferred:'),
        '_finalize_deferred: .*found 0',
    ),
    ('models/__init__.py', replaced(r'allow_image_output: bool', 'allows_images: bool'), 'field `allow_image_output`'),
    ('tools.py', replaced(r"    'DeferredToolRequests',\n", ''), '__all__: `DeferredToolRequests`'),
    (
        'agent/abstract.py',
        replaced(r'            conversation_id: ID', '            id: ID', times=99),
        "run's docstring",
    ),
    # changed
    ('agent/__init__.py', replaced(r'self\.end_strategy = ', 'self.strategy = '), 'assignment of `self.end_strategy`'),
    ('agent/__init__.py', replaced(r'conversation_id: str', 'thread_id: str', times=99), 'parameter `conversation_id`'),
    ('agent/wrapper.py', replaced(r'deferred_tool_results=deferred_tool_results,', ''), r'1 call\(s\) with .* 0 found'),
    ('models/__init__.py', replaced(r'elif tool_def\.defer:', 'elif tool_def.deferred:'), '`tool_def.defer`'),
    ('result.py', replaced(r'    approvals: list', '    approved: list'), 'declaration of `approvals`'),
    # there twice
    (
        'tool_manager.py',
        replaced(r'(if results is not None else None\n)', r'\1        return filter_deferred_results(1) if 1 else 2\n'),
        'found 2 times',
    ),
    ('tools.py', replaced(r"(    'DeferredToolRequests',\n)", r'\1\1'), 'found 2 times'),
    (
        'agent/__init__.py',
        replaced(r'(\n    def _base_run_capability)', r'\n    def _base_run_capability(self): ...\n\1'),
        '2',
    ),
    # no longer Python that this can read
    ('result.py', lambda text: text + 'def (', 'cannot be parsed'),
]


@pytest.mark.parametrize(('file', 'move', 'problem'), MOVES)
def test_a_place_that_is_gone_changed_or_there_twice_is_named(
    file: str, move: Callable[[str], str], problem: str, release: Path
):
    text = move((release / FOLDER / 'pydantic_ai' / file).read_text(encoding='utf-8'))

    with pytest.raises(PlaceChanged, match=problem) as raised:
        changed(file, text)

    assert str(raised.value).startswith(f'pydantic_ai/{file}: ')


def test_where_one_of_many_places_is_gone_no_patch_is_left_not_even_an_earlier_one(moved: Moved, tmp_path: Path):
    build = tmp_path / 'build'
    build.mkdir()
    (build / 'the.patch').write_text('of an earlier release')
    last = list(CHANGES)[-1]

    with pytest.raises(PlaceChanged, match=re.escape(last)):
        write_patch(moved(last, lambda text: 'import sys\n'), build / 'the.patch')

    assert list(build.iterdir()) == []


def test_a_file_that_is_gone_is_named(moved: Moved, tmp_path: Path):
    release = moved('tools.py', lambda text: text + '\n')
    (release / FOLDER / 'pydantic_ai' / 'tools.py').unlink()

    with pytest.raises(PlaceChanged, match=r'pydantic_ai/tools\.py: the whole file: it is gone'):
        write_patch(release, tmp_path / 'the.patch')


def test_a_new_file_that_the_release_has_too_is_named(moved: Moved, tmp_path: Path):
    release = moved('_deferred_results.py', lambda text: 'taken = True\n')

    with pytest.raises(PlaceChanged, match=r'pydantic_ai/_deferred_results\.py: .* has one of this name'):
        write_patch(release, tmp_path / 'the.patch')

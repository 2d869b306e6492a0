from pathlib import Path

import pytest

from maintainers.release.building import differences, epoch
from maintainers.release.environments import ROOT, run


def two_builds(folder: Path, *bodies: bytes) -> list[list[Path]]:
    builds: list[list[Path]] = []
    for i, body in enumerate(bodies):
        (folder / str(i)).mkdir()
        file = folder / str(i) / 'sample-1-py3-none-any.whl'
        file.write_bytes(body)
        builds.append([file])
    return builds


def test_equal_builds_do_not_differ(tmp_path: Path):
    assert differences(*two_builds(tmp_path, b'a', b'a')) == []


def test_one_byte_makes_two_builds_differ(tmp_path: Path):
    assert differences(*two_builds(tmp_path, b'a', b'b')) == ['Two builds of sample-1-py3-none-any.whl differ.']


def test_builds_of_other_names_differ(tmp_path: Path):
    first, _ = two_builds(tmp_path, b'a', b'a')

    assert 'Two builds make' in differences(first, [first[0].with_name('sample-2-py3-none-any.whl')])[0]


def test_the_time_of_a_build_is_the_given_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('SOURCE_DATE_EPOCH', '1700000000')

    assert epoch() == '1700000000'


def test_the_time_of_a_build_is_else_that_of_the_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv('SOURCE_DATE_EPOCH', raising=False)
    committer = {'GIT_COMMITTER_DATE': '1700000001 +0000', 'GIT_COMMITTER_NAME': 'A', 'GIT_COMMITTER_EMAIL': 'a@b.c'}
    run('git', 'init', '--quiet', cwd=tmp_path)
    run(
        *('git', 'commit', '--quiet', '--allow-empty', '--author', 'A <a@b.c>', '--message', 'A', '--no-gpg-sign'),
        cwd=tmp_path,
        **committer,
    )

    assert epoch(tmp_path) == '1700000001'


def test_the_repository_has_one_licence_text():
    texts = {(ROOT / folder / 'LICENSE').read_text() for folder in ('.', 'pydantic_ai_slim', 'tool_approval')}

    assert len(texts) == 1

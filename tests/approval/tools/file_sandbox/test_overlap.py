"""Roots in roots, and other names for them."""

import os

import pytest
from tool_approval.tools.file_sandbox import FileSandbox
from tool_approval.tools.file_sandbox.paths import SandboxRoot

from .world import OVERLAPPING


def test_another_name_for_the_directory_of_a_root_is_refused(world, monkeypatch):
    """As a second mount of it, or a file system that ignores accents would give: told by device and inode."""
    sandbox = world.sandbox(OVERLAPPING)
    identity = (os.lstat(world.ws / 'cache').st_dev, os.lstat(world.ws / 'cache').st_ino)
    index = next(index for index, root in enumerate(sandbox.roots.all) if root.name == 'ref')
    old = sandbox.roots.all[index]
    sandbox.roots.all[index] = SandboxRoot(name=old.name, config=old.config, names=old.names, identity=identity)
    monkeypatch.setattr(SandboxRoot, 'is_where_it_was', True)

    decision = sandbox.decide('write_file', 'cache/x')

    assert decision.outcome == 'block'
    assert "may be an alias of a path in root 'ref'" in decision.reason


def test_an_inode_that_was_used_again_is_no_other_name(world):
    sandbox = world.sandbox(OVERLAPPING)
    (world.ws / 'ref/r.md').unlink()
    (world.ws / 'ref').rename(world.ws / 'old')

    assert sandbox.decide('write_file', 'old/x').outcome == 'allow'


def test_a_root_of_the_whole_file_system_is_possible(world):
    sandbox = FileSandbox({'paths': {'all': {'root': '/'}}}, world.ws)

    assert sandbox.decide('read_file', '../outside/secret.txt').outcome == 'allow'
    assert sandbox.decide('list_files', '/').outcome == 'allow'
    assert sandbox.decide('list_files', '/../..').outcome == 'allow'


def test_no_roots_allow_nothing(world):
    decision = FileSandbox({}, world.ws).decide('read_file', 'notes/a.txt')

    assert decision.outcome == 'block'
    assert decision.reason.endswith('Allowed: none.')


def test_sandbox_says_what_a_path_needs(world):
    sandbox = world.sandbox()

    assert sandbox.root_of('notes/a.txt') == 'notes'
    assert sandbox.root_of('outside') is None
    assert sandbox.root_of('\0') is None
    assert sandbox.needs_read_approval('priv/p.txt')
    assert sandbox.needs_read_approval('priv')
    assert not sandbox.needs_read_approval('notes')
    assert sandbox.needs_write_approval('notes/new.txt')
    assert not sandbox.needs_write_approval('cache')
    with pytest.raises(PermissionError):
        sandbox.needs_write_approval('ref/r.md')

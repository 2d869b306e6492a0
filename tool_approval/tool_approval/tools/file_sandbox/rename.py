"""Renames that replace nothing, and renames that swap: what Python itself does not offer."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from functools import cache

_LINUX = {'exclusive': 1, 'exchange': 2}
"""`RENAME_NOREPLACE` and `RENAME_EXCHANGE` of linux/fs.h."""

_MACOS = {'exclusive': 4, 'exchange': 2}
"""`RENAME_EXCL` and `RENAME_SWAP` of macOS's sys/stdio.h."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class NoExchange(Exception):
    """This system, or this file system, cannot swap two names."""


def exchange(folder: int, name: str, other_folder: int, other: str) -> None:
    """Swap what two names stand for, in one step.

    Raises:
        NoExchange: It cannot be done here.
        OSError: One of them does not exist.
    """
    try:
        _rename('exchange', folder, name, other_folder, other)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise NoExchange from None
        raise


def rename_exclusive(folder: int, name: str, other_folder: int, other: str) -> None:
    """Rename, unless the new name is taken.

    Raises:
        FileExistsError: It is.
        OSError: The old name does not exist, or is on another file system.
    """
    try:
        _rename('exclusive', folder, name, other_folder, other)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _rename_in_steps(folder, name, other_folder, other)


def _rename_in_steps(folder: int, name: str, other_folder: int, other: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        # A directory cannot have two names. Made first, it is replaced only as long as it is empty.
        os.mkdir(other, dir_fd=other_folder)
        os.rename(name, other, src_dir_fd=folder, dst_dir_fd=other_folder)
        return
    os.link(name, other, src_dir_fd=folder, dst_dir_fd=other_folder, follow_symlinks=False)
    os.unlink(name, dir_fd=folder)


def _rename(kind: str, folder: int, name: str, other_folder: int, other: str) -> None:
    function, flags = _system_call()
    if function(folder, os.fsencode(name), other_folder, os.fsencode(other), flags[kind]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _system_call() -> tuple[Callable[..., int], dict[str, int]]:
    name, flags = ('renameatx_np', _MACOS) if sys.platform == 'darwin' else ('renameat2', _LINUX)
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return _missing, flags
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function, flags


def _missing(*arguments: object) -> int:
    ctypes.set_errno(errno.ENOSYS)
    return -1

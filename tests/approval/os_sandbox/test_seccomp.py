"""The filter, run by an interpreter of its own, for machines that are not at hand too."""

import errno
import platform
import struct

import pytest
from tool_approval.os_sandbox.seccomp import filter_program

ALLOW = 0x7FFF0000
GENERIC = {'socket': 198, 'socketpair': 199, 'ioctl': 29, 'clone': 220, 'unshare': 97, 'keyctl': 219, 'ptrace': 117,
           'process_vm_readv': 270, 'process_vm_writev': 271}  # fmt: skip
"""Numbers of system calls that newer machines share."""
OLD = {'socket': 41, 'socketpair': 53, 'ioctl': 16, 'clone': 56, 'unshare': 272, 'keyctl': 250, 'ptrace': 101,
       'process_vm_readv': 310, 'process_vm_writev': 311}  # fmt: skip
MACHINES = {
    'x86_64': {'arch': 0xC000003E, **OLD},
    'aarch64': {'arch': 0xC00000B7, **GENERIC},
    'riscv64': {'arch': 0xC00000F3, **GENERIC},
}


def judge(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """The error number a system call gets, 0 if it is allowed."""
    data = struct.pack('=IIQ6Q', number, arch, 0, *arguments, *([0] * (6 - len(arguments))))
    steps = list(struct.iter_unpack('=HBBI', program))
    here, loaded = 0, 0
    while True:
        code, if_true, if_false, value = steps[here]
        here += 1
        if code == 0x20:
            loaded = struct.unpack_from('=I', data, value)[0]
        elif code == 0x06:
            assert value == ALLOW or value >> 16 == 5
            return 0 if value == ALLOW else value & 0xFFFF
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            here += if_true if holds else if_false


@pytest.mark.parametrize('machine', MACHINES)
def test_only_what_leads_out_is_refused(machine: str):
    program, calls = filter_program(machine), MACHINES[machine]
    assert program is not None

    def call(name: str, *arguments: int) -> int:
        return judge(program, calls['arch'], calls[name], *arguments)

    assert [call('socket', family) for family in (2, 10, 16)] == [0, 0, 0]
    assert {call('socket', family) for family in (0, 1, 17, 38, 40, 1 + (1 << 32))} == {errno.EAFNOSUPPORT}
    assert call('socketpair', 1) == 0
    assert [call('ioctl', 0, request) for request in (0x5412, 0x541C, 0x5412 + (1 << 32))] == [errno.EPERM] * 3
    assert call('ioctl', 0, 0x5413) == 0
    assert [call(name, 0x10000000 | 0x100) for name in ('clone', 'unshare')] == [errno.EPERM] * 2
    assert [call(name, 0x00000100) for name in ('clone', 'unshare')] == [0, 0]
    assert call('keyctl') == errno.EPERM
    assert [call('ptrace', 0x4206, process) for process in (1, 1 + (1 << 32), 2, 0)] == [errno.EPERM] * 2 + [0] * 2
    for name in ('process_vm_readv', 'process_vm_writev'):
        assert [call(name, process) for process in (1, 1 + (1 << 32), 2)] == [errno.EPERM] * 2 + [0]
    assert judge(program, calls['arch'], 438) == errno.EPERM
    assert [judge(program, calls['arch'], number) for number in (435, 425)] == [errno.ENOSYS] * 2
    assert judge(program, 0x40000003, 1) == errno.EPERM
    assert judge(program, calls['arch'], 0x40000029) == errno.EPERM
    assert judge(program, calls['arch'], 0) == 0


def test_an_unknown_machine_has_none():
    assert filter_program('pdp11') is None
    assert filter_program(platform.machine()) is not None or platform.machine() not in MACHINES

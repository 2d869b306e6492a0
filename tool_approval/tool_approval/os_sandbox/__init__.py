"""What a command may touch, enforced by the kernel: profiles, and the backends that confine under one."""

from .backend import Availability, OSSandboxBackend
from .bubblewrap import BubblewrapBackend
from .choose import OSSandboxFallback, choose_backend, platform_backends
from .derive import (
    GIT_CONTROL_NAMES,
    PathSettings,
    SandboxSettings,
    ShellSettings,
    derive_os_sandbox_profile,
)
from .environment import passed_on
from .errors import OSSandboxError, OSSandboxUnavailable
from .profile import DEFAULT_ENVIRONMENT, Access, OSProfile, Root
from .seatbelt import SeatbeltBackend, seatbelt_rules
from .system import system_profile
from .unconfined import RefusingBackend, UnconfinedBackend

__all__ = (
    'DEFAULT_ENVIRONMENT',
    'GIT_CONTROL_NAMES',
    'Access',
    'Availability',
    'BubblewrapBackend',
    'OSProfile',
    'OSSandboxBackend',
    'OSSandboxError',
    'OSSandboxFallback',
    'OSSandboxUnavailable',
    'PathSettings',
    'RefusingBackend',
    'Root',
    'SandboxSettings',
    'SeatbeltBackend',
    'ShellSettings',
    'UnconfinedBackend',
    'choose_backend',
    'derive_os_sandbox_profile',
    'passed_on',
    'platform_backends',
    'seatbelt_rules',
    'system_profile',
)

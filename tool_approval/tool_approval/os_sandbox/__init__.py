"""Confine commands with kernel features. A profile defines the access of a command. A backend enforces the profile."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .access import ACCESS_NAMES, AccessName, ExtraAccess
    from .backend import Availability, OSSandboxBackend, OSSandboxFallback, RefusingBackend, UnconfinedBackend
    from .bubblewrap import BubblewrapBackend
    from .choose import choose_backend, platform_backends
    from .derive import (
        GIT_CONTROL_NAMES,
        ConfiguredPath,
        ConfiguredSandbox,
        ConfiguredShell,
        derive_os_sandbox_profile,
        system_profile,
    )
    from .profile import DEFAULT_ENVIRONMENT, Access, OSProfile, OSSandboxError, OSSandboxUnavailable, Root, passed_on
    from .seatbelt import SeatbeltBackend, seatbelt_rules

__all__ = (
    'ACCESS_NAMES',
    'DEFAULT_ENVIRONMENT',
    'GIT_CONTROL_NAMES',
    'Access',
    'AccessName',
    'Availability',
    'BubblewrapBackend',
    'ConfiguredPath',
    'ConfiguredSandbox',
    'ConfiguredShell',
    'ExtraAccess',
    'OSProfile',
    'OSSandboxBackend',
    'OSSandboxError',
    'OSSandboxFallback',
    'OSSandboxUnavailable',
    'RefusingBackend',
    'Root',
    'SeatbeltBackend',
    'UnconfinedBackend',
    'choose_backend',
    'derive_os_sandbox_profile',
    'passed_on',
    'platform_backends',
    'seatbelt_rules',
    'system_profile',
)

if not TYPE_CHECKING:  # pragma: no branch - a type checker must report a name that is not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'access': ('ACCESS_NAMES', 'AccessName', 'ExtraAccess'),
            'backend': (
                'Availability',
                'OSSandboxBackend',
                'OSSandboxFallback',
                'RefusingBackend',
                'UnconfinedBackend',
            ),
            'bubblewrap': ('BubblewrapBackend',),
            'choose': ('choose_backend', 'platform_backends'),
            'derive': (
                'GIT_CONTROL_NAMES',
                'ConfiguredPath',
                'ConfiguredSandbox',
                'ConfiguredShell',
                'derive_os_sandbox_profile',
                'system_profile',
            ),
            'profile': (
                'Access',
                'DEFAULT_ENVIRONMENT',
                'OSProfile',
                'OSSandboxError',
                'OSSandboxUnavailable',
                'Root',
                'passed_on',
            ),
            'seatbelt': ('SeatbeltBackend', 'seatbelt_rules'),
        },
    )

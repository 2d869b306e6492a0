"""Read the settings file, decide whether to trust it, and create the tools that it describes."""

from typing import TYPE_CHECKING

from tool_approval.core import lazy_exports

if TYPE_CHECKING:
    from .confinement import ConfinedShell
    from .files import LoadedSettings, SettingsAudit, effective, find_settings, load_settings, trust_settings
    from .model import DEFAULT_SANDBOX, PathSettings, SandboxSettings, Settings, parse_settings, read_settings
    from .trust import TrustedFile, TrustError, TrustStore
    from .workspace import RUN_SHELL, Workspace, open_workspace

__all__ = (
    'DEFAULT_SANDBOX',
    'RUN_SHELL',
    'ConfinedShell',
    'LoadedSettings',
    'PathSettings',
    'SandboxSettings',
    'Settings',
    'SettingsAudit',
    'TrustError',
    'TrustStore',
    'TrustedFile',
    'Workspace',
    'effective',
    'find_settings',
    'load_settings',
    'open_workspace',
    'parse_settings',
    'read_settings',
    'trust_settings',
)

if not TYPE_CHECKING:  # pragma: no branch - a type checker must report a name that is not imported above
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            'confinement': ('ConfinedShell',),
            'files': (
                'LoadedSettings',
                'SettingsAudit',
                'effective',
                'find_settings',
                'load_settings',
                'trust_settings',
            ),
            'model': (
                'DEFAULT_SANDBOX',
                'PathSettings',
                'SandboxSettings',
                'Settings',
                'parse_settings',
                'read_settings',
            ),
            'trust': ('TrustError', 'TrustStore', 'TrustedFile'),
            'workspace': ('RUN_SHELL', 'Workspace', 'open_workspace'),
        },
    )

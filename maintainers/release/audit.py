"""Look up known vulnerabilities of locked dependencies: `make audit-dependencies`.

    python -m maintainers.release.audit requirements/newest.txt ...

The exit code is 0 if every locked version was looked up and has no known vulnerability, 1 if one has, and 2 if the
service did not answer for each version, so that the result is unknown.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2


def pip_audit(lock: str) -> str:
    """Run pip-audit on a lock file, and return its report as JSON, or else its output."""
    # Without resolving or installing: only the versions in the file are audited.
    command = [sys.executable, '-m', 'pip_audit', '--requirement', lock, '--disable-pip', '--require-hashes']
    finished = subprocess.run(
        [*command, '--format', 'json', '--progress-spinner', 'off'], capture_output=True, text=True, check=False
    )
    return finished.stdout if finished.stdout.startswith('{') else finished.stderr or finished.stdout


def verdict(report: str) -> tuple[int, list[str]]:
    """Return the exit code for a report, and lines with the reason.

    pip-audit itself exits with 0 and reports no findings if it could not look anything up.
    """
    try:
        dependencies: list[dict[str, Any]] = json.loads(report)['dependencies']
    except (ValueError, KeyError, TypeError):
        return NOT_AUDITED, [f'pip-audit gave no report: {report.strip()[-300:]}']
    skipped = [f'not looked up: {one["name"]}: {one["skip_reason"]}' for one in dependencies if 'skip_reason' in one]
    vulnerable = [
        f'{one["name"]} {one["version"]}: {found["id"]}, fixed in {", ".join(found["fix_versions"]) or "no version"}'
        for one in dependencies
        for found in one.get('vulns', [])
    ]
    if vulnerable:
        return VULNERABLE, vulnerable + skipped
    if skipped or not dependencies:
        return NOT_AUDITED, skipped or ['the lock file names nothing']
    return CLEAN, [f'{len(dependencies)} versions looked up, none with a known vulnerability']


def main(locks: list[str], ask: Callable[[str], str] = pip_audit) -> int:
    """Audit lock files, and return the exit code."""
    codes: list[int] = []
    for lock in locks:
        code, lines = verdict(ask(lock))
        codes.append(code)
        print(f'{lock}: {("clean", "VULNERABLE", "NOT AUDITED")[code]}')
        for line in lines[:5]:
            print(f'  {line}')
        if len(lines) > 5:
            print(f'  and {len(lines) - 5} more')
    if NOT_AUDITED in codes:
        print('The vulnerability service did not answer, so the result is unknown.')
    return VULNERABLE if VULNERABLE in codes else max(codes, default=NOT_AUDITED)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

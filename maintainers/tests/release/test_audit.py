import json

import pytest

from maintainers.release.audit import main, verdict

AUDITED = {'name': 'idna', 'version': '3.20', 'vulns': []}
VULNERABLE = {'name': 'h11', 'version': '0.1', 'vulns': [{'id': 'PYSEC-1', 'fix_versions': ['0.2'], 'aliases': []}]}
UNKNOWN = {'name': 'anyio', 'skip_reason': 'Dependency not found on PyPI and could not be audited: anyio (4.16.0)'}


def report(*dependencies: object) -> str:
    return json.dumps({'dependencies': dependencies, 'fixes': []})


@pytest.mark.parametrize(
    ('given', 'code', 'line'),
    [
        (report(AUDITED), 0, '1 versions looked up, none with a known vulnerability'),
        (report(AUDITED, VULNERABLE), 1, 'h11 0.1: PYSEC-1, fixed in 0.2'),
        (report(UNKNOWN, VULNERABLE), 1, 'h11 0.1: PYSEC-1, fixed in 0.2'),
        (report(AUDITED, UNKNOWN), 2, f'not looked up: anyio: {UNKNOWN["skip_reason"]}'),
        (report(), 2, 'the lock file names nothing'),
        ('ConnectionError: name or service not known', 2, 'pip-audit gave no report: ConnectionError: name or service'),
        ('[]', 2, 'pip-audit gave no report: []'),
    ],
)
def test_only_a_complete_answer_without_findings_is_clean(given: str, code: int, line: str):
    found, lines = verdict(given)

    assert found == code
    assert lines[0].startswith(line)


def test_service_that_does_not_answer_is_reported(capsys: pytest.CaptureFixture[str]):
    reports = {'a.txt': report(AUDITED), 'b.txt': report(UNKNOWN)}

    code = main(['a.txt', 'b.txt'], ask=reports.__getitem__)

    assert code == 2
    assert capsys.readouterr().out.splitlines() == [
        'a.txt: clean',
        '  1 versions looked up, none with a known vulnerability',
        'b.txt: NOT AUDITED',
        f'  not looked up: anyio: {UNKNOWN["skip_reason"]}',
        'The vulnerability service did not answer, so the result is unknown.',
    ]


def test_a_finding_counts_more_than_a_missing_answer():
    reports = {'a.txt': report(VULNERABLE), 'b.txt': report(UNKNOWN)}

    assert main(['b.txt', 'a.txt'], ask=reports.__getitem__) == 1


def test_no_file_is_no_audit():
    assert main([]) == 2

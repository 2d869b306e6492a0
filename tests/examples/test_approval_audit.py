def test_every_change_of_the_log_is_named_with_its_line(play):
    lines = play('approval_audit')

    assert lines == [
        'sent to ada@example.org',
        "Denied 'send_mail': Not outside of the house.",
        "Blocked 'delete_mail': The tool 'delete_mail' is blocked by policy.",
        "1. run 1 send_mail approved {'subject': 'Key', 'to': 'ada@example.org'}",
        '2. run 1 send_mail executed',
        "3. run 2 send_mail denied {'subject': '[redacted]', 'to': 'eve@example.net'}",
        '4. run 3 delete_mail denied {}',
        '',
        'as it was written: intact',
        'a denial is made an approval: line 3: the line was changed, or written with another key',
        'a line is taken out: line 3: the line does not follow the previous line: lines were removed, added or moved',
        'the last line is cut off: line 4: the noted head is not in the log: lines are missing at its end',
        'read with another key: line 1: the line was changed, or written with another key',
    ]


def test_the_text_of_a_mail_is_not_in_the_log(load, tmp_path):
    example = load('approval_audit')
    log = example.JsonlAuditSink(tmp_path / 'audit.jsonl', key=b'k' * 32)

    example.work(log)
    log.close()

    assert 'under the mat' not in (tmp_path / 'audit.jsonl').read_text()

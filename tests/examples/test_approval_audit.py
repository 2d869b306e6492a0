def test_the_text_of_a_mail_is_not_in_the_log(load, tmp_path):
    example = load('approval_audit')
    log = example.JsonlAuditSink(tmp_path / 'audit.jsonl', key=b'k' * 32)

    example.work(log)
    log.close()

    assert 'under the mat' not in (tmp_path / 'audit.jsonl').read_text()

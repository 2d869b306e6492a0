import asyncio


def test_a_process_with_another_key_does_not_run_what_was_approved(load, tmp_path):
    example = load('approval_stop_resume')
    asyncio.run(example.first_process(tmp_path))
    asyncio.run(example.second_process(tmp_path))
    (tmp_path / 'key').unlink()

    output = asyncio.run(example.third_process(tmp_path))

    assert output == (
        'The call changed after it was approved, so it was not run.; '
        'The approver denied this call, so it was not run: I do not know her.'
    )

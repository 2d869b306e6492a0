import pytest
from tool_approval.tools.shell.running import BoundedOutput


def read(max_bytes, *chunks):
    output = BoundedOutput(max_bytes)
    for chunk in chunks:
        output.add(chunk)
    return output


def test_output_that_fits_is_unchanged():
    assert read(10, b'01234', b'56789').text() == '0123456789'


@pytest.mark.parametrize('size', [1, 2, 3, 7, 100])
def test_beginning_and_end_are_kept_however_the_bytes_come(size):
    data = bytes(range(65, 91)) * 4
    chunks = [data[at : at + size] for at in range(0, len(data), size)]

    output = read(10, *chunks)

    assert output.text() == 'ABCDE\n... [94 bytes left out] ...\nVWXYZ'
    assert output.total == 104


def test_memory_stays_bounded_with_many_small_pieces():
    output = read(1000, *[b'a'] * 100_000)

    assert sum(len(piece) for piece in output._tail) <= 500  # nothing public tells what is held


def test_binary_output_is_reported_by_size():
    assert read(10, b'a\0b').text() == '[binary output, 3 bytes]'
    assert read(10, b'\xff').text() == '\ufffd'

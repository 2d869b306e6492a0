"""Print which process listens on a TCP port of this machine: `python port_owner.py 8080`.

The script is for Linux machines without `ss` and `lsof`. `/proc/net/tcp` lists the TCP sockets,
and `/proc/PID/fd` lists the open files of a process; see proc(5).
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

LISTEN = '0A'  # the state column of /proc/net/tcp, TCP_LISTEN in the kernel's include/net/tcp_states.h


def listening_sockets(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on `port`, over IPv4 and IPv6."""
    inodes: set[str] = set()
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        if not os.path.exists(table):  # pragma: no cover - a kernel without IPv6
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            columns = line.split()
            local_port = int(columns[1].rpartition(':')[2], 16)
            if local_port == port and columns[3] == LISTEN:
                inodes.add(columns[9])
    return inodes


def owners(inodes: set[str]) -> Iterator[tuple[int, str]]:
    """Yield `(pid, command line)` of each process that has one of the sockets open."""
    wanted = {f'socket:[{inode}]' for inode in inodes}
    for process in Path('/proc').glob('[0-9]*'):
        try:
            held = {os.readlink(descriptor) for descriptor in (process / 'fd').iterdir()}
            command = (process / 'cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace').strip()
        except OSError:  # the process has ended, or belongs to another user
            continue
        if held & wanted:
            yield int(process.name), command


def main(port: int) -> int:
    """Print a line for each process, and return the exit status: 1 if no process was found."""
    found = list(owners(listening_sockets(port)))
    for pid, command in found:
        print(f'pid={pid} {command}')
    return 0 if found else 1


if __name__ == '__main__':  # pragma: no cover - a process of its own
    sys.exit(main(int(sys.argv[1])))

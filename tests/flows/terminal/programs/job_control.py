"""Runs a program in the foreground, as a shell does, and continues it when it was stopped."""

import os
import signal
import sys
import termios

TTY = os.open('/dev/tty', os.O_RDWR)


def is_sane() -> bool:
    return termios.tcgetattr(TTY)[3] == BEFORE


BEFORE = termios.tcgetattr(TTY)[3]
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(TTY, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    os.tcsetpgrp(TTY, os.getpgrp())
    if os.WIFSTOPPED(status):
        print(f'stopped with a sane terminal: {is_sane()}', flush=True)
        os.tcsetpgrp(TTY, child)
        os.killpg(child, signal.SIGCONT)
    else:
        if os.WIFSIGNALED(status):
            print(f'ended by signal {os.WTERMSIG(status)} with a sane terminal: {is_sane()}', flush=True)
        break

"""Measure systems that ask before a tool runs, side by side: `python -m maintainers.peers`, `make bench-peers`."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from .catalog import PEERS, Peer
from .environments import REPOSITORY, InstallError, python_of
from .measure import FULL, QUICK, measure
from .page import page, plots
from .process import Worker
from .results import Results

TIMEOUT_S = 180
"""A worker that takes longer to get ready, or for an order, is given up, and the page says so."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the page, and write it if asked to.

    A peer that cannot be installed or fails is listed with the reason. The program succeeds nevertheless.
    """
    parser = argparse.ArgumentParser(prog='python -m maintainers.peers', description=__doc__)
    parser.add_argument('--quick', action='store_true', help='measure next to nothing, to see that all work')
    parser.add_argument('--write', type=Path, metavar='PATH', help='also write the page and, beside it, its plots')
    options = parser.parse_args(arguments)
    results = Results(machine=_machine(), load_before=os.getloadavg()[0])
    pythons = _build(results)

    def start(peer: Peer) -> Worker:
        command = [str(pythons[peer.name]), '-m', f'maintainers.peers.workers.{peer.worker}', *peer.arguments]
        return Worker(command, folder=REPOSITORY, timeout_s=TIMEOUT_S)

    # An interrupt ends the measurements, and the page shows those made before.
    with contextlib.suppress(KeyboardInterrupt):
        measure(results, PEERS, QUICK if options.quick else FULL, start, _note)
    results.load_after = os.getloadavg()[0]
    stem = options.write.stem if options.write is not None else 'peers'
    text = page(results, pictures=stem)
    print(text, end='')
    if options.write is not None:
        options.write.write_text(text, encoding='utf-8')
        for kind, drawing in plots(results).items():
            options.write.with_name(f'{stem}-{kind}.svg').write_text(drawing, encoding='utf-8')


def _build(results: Results) -> dict[str, Path]:
    pythons: dict[str, Path] = {}
    for peer in PEERS:
        _note(f'environment of {peer.name}')
        try:
            pythons[peer.name] = python_of(peer.environment)
        except InstallError as error:
            results.missing[peer.name] = f'could not be installed: {error}'
    # Building loads the machine too; only the load at the start of the measurements counts.
    results.load_before = os.getloadavg()[0]
    return pythons


def _machine() -> str:
    return (
        f'{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}, '
        f'{os.cpu_count()} processors'
    )


def _note(progress: str) -> None:
    if sys.stderr.isatty():
        print(f'\r\033[K{progress}', end='', file=sys.stderr, flush=True)


if __name__ == '__main__':
    main()

"""How the tests reach the examples: as modules, as programs that run to their end, and as programs to talk to."""

import asyncio
import importlib.util
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / 'examples'
# Many times what the slowest example takes; it only keeps a failing test from hanging
LIMIT_S = 60


@pytest.fixture
def command() -> Callable[..., list[str]]:
    """The command that runs an example, with warnings as errors."""
    return lambda name, *args: [sys.executable, '-W', 'error', str(FOLDER / f'{name}.py'), *args]


@pytest.fixture
def load() -> Callable[[str], ModuleType]:
    """Import an example anew, so that no test sees another one's state."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f'{name}.py')
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where dataclasses look for a class's module
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]
        return module

    return load


@pytest.fixture
def finish() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end."""
    return lambda coroutine: asyncio.run(asyncio.wait_for(coroutine, LIMIT_S))


@pytest.fixture
def play(command, capsys) -> Callable[[str], list[str]]:
    """Run an example that asks nothing as a program in this process, and return the lines it prints."""

    def play(name: str) -> list[str]:
        runpy.run_path(command(name)[-1], run_name='__main__')
        return capsys.readouterr().out.splitlines()

    return play


@pytest.fixture
def run(command) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run an example to its end; `given` is its standard input."""

    def run(name: str, *args: str, given: str = '') -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(name, *args), input=given, capture_output=True, text=True, timeout=LIMIT_S)

    return run


@pytest.fixture
def start(command) -> Callable[..., Any]:
    """Start an example to talk to; what is still running afterwards is killed."""

    @contextmanager
    def start(name: str, *args: str, text: bool = True) -> Iterator[subprocess.Popen[Any]]:
        process = subprocess.Popen(
            command(name, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text
        )
        watchdog = threading.Timer(LIMIT_S, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            watchdog.join()
            process.kill()
            process.communicate()

    return start

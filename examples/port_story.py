"""The demo: an agent stops the process that listens on a port, with the user's approval, in one run.

    python examples/port_story.py                 you answer
    python examples/port_story.py --answers yn    the look-up is approved, and stopping is denied
    python examples/port_story.py --model openai:gpt-5.2    a real model in place of the script

The processes are real: two web servers on the loopback, of which one must not be stopped. The agent does not know their
process ids. It learns one from the output of the command that it was allowed to run.
"""

import argparse
import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_deferred import Agent

Ask = Callable[[str], str]

agent = Agent(
    deps_type=int,
    instructions='You release TCP ports on this machine. First find out which process listens on the port, then stop '
    'it, then say in one or two sentences what happened. If a step is refused, do not try it again: say so and end.',
)


@agent.tool_plain(requires_approval=True)
async def run_command(command: str) -> str:
    """Run a command without a shell, and return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), timeout=10)
    text = output.decode(errors='replace')
    print(*(f'  | {printable(line)}' for line in text.splitlines()), sep='\n')
    return f'exit code {process.returncode}\n{text}'


@agent.tool_plain(requires_approval=True)
def stop_process(pid: int) -> str:
    """Ask a process to end (SIGTERM)."""
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError as error:
        return f'process {pid} could not be stopped: {error}'
    return f'process {pid} was sent SIGTERM'


def look_up(port: int) -> str:
    """Return a command that finds the process on a port, made of a program that this machine has."""
    if shutil.which('ss'):
        return f"ss --listening --tcp --numeric --processes 'sport = :{port}'"
    if shutil.which('lsof'):
        return f'lsof -nP -iTCP:{port} -sTCP:LISTEN -Fp'
    return shlex.join([sys.executable, str(Path(__file__).with_name('port_owner.py')), str(port)])


def script(port: int) -> FunctionModel:
    """Return a model that looks up the process, stops it and reports. It respects a denial."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if not results:
            return ModelResponse([ToolCallPart('run_command', {'command': look_up(port)})])
        result = results[-1]
        if result.outcome == 'denied':
            return ModelResponse([TextPart(f'Port {port} is still in use: {result.tool_name} was refused.')])
        if result.tool_name == 'run_command':
            owner = re.search(r'\bpid=(\d+)|^p(\d+)$', str(result.content), re.MULTILINE)
            if owner is None:
                return ModelResponse([TextPart(f'I can see nothing that listens on port {port}.')])
            return ModelResponse([ToolCallPart('stop_process', {'pid': int(owner[1] or owner[2])})])
        return ModelResponse([TextPart(f'Port {port} is free again: {result.content}.')])

    return FunctionModel(respond)


def printable(value: object) -> str:
    """Return text of the model with control characters escaped, so that it cannot move the cursor."""
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in str(value))


def asking(ask: Ask) -> Callable[[RunContext[int], DeferredToolRequests], DeferredToolResults]:
    """Return a handler that asks about each call. Any answer except `y` denies."""

    def handler(ctx: RunContext[int], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for call in requests.approvals:
            print(f'\n  The agent wants to call {call.tool_name}')
            for name, value in call.args_as_dict().items():
                print(f'    {name} = {printable(value)}')
            answer = ask('  Allow it? [y/n] ')
            results.approvals[call.tool_call_id] = answer == 'y' or ToolDenied('The user refused this call.')
        return results

    return handler


def from_keyboard(question: str) -> str:
    """Read an answer from the terminal or a pipe. The end of the input denies."""
    try:
        answer = input(question)
    except EOFError:
        print('(end of input)')
        return 'n'
    if not sys.stdin.isatty():
        print(answer)
    return answer.strip().lower()


def from_list(answers: str) -> Ask:
    """Answer with one letter after another, and deny after the last one."""
    remaining = iter(answers)

    def ask(question: str) -> str:
        answer = next(remaining, 'n')
        print(f'{question}{answer}')
        return answer

    return ask


@contextlib.contextmanager
def server(port: int) -> Generator[subprocess.Popen[bytes]]:
    """Run a web server on the loopback, without content, until the `with` block ends."""
    command = [sys.executable, '-m', 'http.server', str(port), '--bind', '127.0.0.1', '--directory', os.devnull]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), timeout=1):
                break
        yield process
    finally:
        process.kill()
        process.wait()


def free_port(wish: int) -> int:
    """Return `wish` if that port is free, and otherwise one that the system chooses."""
    for port in (wish, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(('127.0.0.1', port))
            return int(probe.getsockname()[1])
    raise OSError('no port is free on 127.0.0.1')


def has_ended(process: subprocess.Popen[Any], within_s: float) -> bool:
    """Whether the process ends within this number of seconds."""
    try:
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


async def main() -> None:
    """Play the story, and print the facts afterwards."""
    options = argparse.ArgumentParser(description='Free a port, with consent.')
    options.add_argument('--answers', help='answer for the person, e.g. yy, yn or n')
    options.add_argument('--model', help='a model such as openai:gpt-5.2 instead of the embedded script')
    options.add_argument('--port', type=int, default=8080, help='the port, if it is free (default: 8080)')
    chosen = options.parse_args()
    os.environ.setdefault('PYDANTIC_AI_NO_BANNER', '1')

    port = free_port(chosen.port)
    with server(port) as target, server(free_port(0)) as decoy:
        print(f'Two web servers run, and one of them listens on port {port}. You: "Free port {port}."')
        result = await agent.run(
            f'Free port {port}.',
            deps=port,
            model=chosen.model or script(port),
            deferred_tool_handler=asking(from_list(chosen.answers) if chosen.answers else from_keyboard),
        )
        print(f'\nThe agent: {printable(result.output)}')

        steps = [part for message in result.all_messages() for part in message.parts]
        refused = [part for part in steps if isinstance(part, ToolReturnPart) and part.outcome == 'denied']
        stopped = any(isinstance(part, ToolCallPart) and part.tool_name == 'stop_process' for part in steps)
        ended = has_ended(target, within_s=5 if stopped and not refused else 0)
        print(f'\nIn fact: the server on port {port} {"has ended" if ended else "is still running"}', end=', ')
        print(f'the other server {"has ended" if has_ended(decoy, within_s=0) else "is still running"}.')
        requests = sum(isinstance(message, ModelRequest) for message in result.all_messages())
        print(f'One run: {requests} model requests; refused calls: {len(refused)}.')


if __name__ == '__main__':
    asyncio.run(main())

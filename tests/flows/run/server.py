"""A model's server on the loopback that speaks OpenAI's chat completions, streamed and whole, and follows a script."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = dict[str, Any]
"""`text` and `calls` (a list of names with arguments) of an answer; `drop`: the text after which the connection breaks;
`status`: an HTTP error, `times` in a row."""


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.steps = [step for step in steps for _ in range(step.get('times', 1))]
        self.requests: list[dict[str, Any]] = []
        """The body of each request."""
        self.keys: set[str | None] = set()
        """The authorization that came with them."""
        threading.Thread(target=self.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """For the client."""
        return {
            'OPENAI_BASE_URL': f'http://127.0.0.1:{self.server_address[1]}/v1',
            'OPENAI_API_KEY': 'a-key-for-the-test',
        }

    def told(self, number: int, role: str) -> list[str]:
        """Return the messages of a role in the request of that number."""
        return [str(message['content']) for message in self.requests[number]['messages'] if message['role'] == role]

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is expected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        assert self.path == '/v1/chat/completions'
        body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        self.server.requests.append(body)
        self.server.keys.add(self.headers['authorization'])
        step = self.server.steps.pop(0)
        if 'status' in step:
            self._whole({'error': {'message': step['text'], 'type': 'test'}}, status=step['status'])
        elif body.get('stream'):
            self._stream(step)
        else:
            self._whole(_completion('chat.completion', {'message': _message(step)}, step))

    def _whole(self, answer: dict[str, Any], *, status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, step: Step) -> None:
        self.send_response(200)
        self.send_header('content-type', 'text/event-stream')
        self.send_header('transfer-encoding', 'chunked')
        self.end_headers()
        for delta in _deltas(step):
            self._send(json.dumps(_completion('chat.completion.chunk', {'delta': delta}, None)))
        if 'drop' in step:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self._send(json.dumps(_completion('chat.completion.chunk', {'delta': {}}, step)))
        self._send('[DONE]')
        self.wfile.write(b'0\r\n\r\n')

    def _send(self, data: str) -> None:
        event = f'data: {data}\n\n'.encode()
        self.wfile.write(b'%x\r\n%s\r\n' % (len(event), event))


def _completion(kind: str, choice: dict[str, Any], ends: Step | None) -> dict[str, Any]:
    reason = None if ends is None else 'tool_calls' if ends.get('calls') else 'stop'
    choices = [{'index': 0, 'finish_reason': reason, **choice}]
    return {'id': 'answer', 'object': kind, 'created': 0, 'model': 'scripted', 'choices': choices}


def _message(step: Step) -> dict[str, Any]:
    calls = _calls(step)
    return {'role': 'assistant', 'content': step.get('text'), **({'tool_calls': calls} if calls else {})}


def _calls(step: Step) -> list[dict[str, Any]]:
    return [
        {
            'id': f'call-{id(step)}-{number}',
            'type': 'function',
            'function': {'name': name, 'arguments': json.dumps(args)},
        }
        for number, (name, args) in enumerate(step.get('calls', []))
    ]


def _deltas(step: Step) -> Iterator[dict[str, Any]]:
    yield {'role': 'assistant', 'content': ''}
    text = step.get('text', '') or step.get('drop', '')
    size = max(7, len(text) // 1000)
    for start in range(0, len(text), size):
        yield {'content': text[start : start + size]}
    for number, call in enumerate(_calls(step)):
        function = call['function']
        arguments, half = function['arguments'], len(function['arguments']) // 2
        yield {'tool_calls': [{**call, 'index': number, 'function': {**function, 'arguments': arguments[:half]}}]}
        yield {'tool_calls': [{'index': number, 'function': {'arguments': arguments[half:]}}]}

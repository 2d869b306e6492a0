"""Runs a client with a model on the loopback of a network namespace of its own. Run by `unshare -n`.

Standard input has a JSON object: `client`, `command`, `environment`, and `calls`, the tool calls of the model, each
`[name, arguments]`. Standard output gets a JSON object: `results`, what the model got for each call, and the `status`
and the `output` of the client.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def loopback_up():
    with socket.socket() as any_socket:
        found = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack('16sh14x', b'lo', 0))
        flags = struct.unpack('16sh14x', found)[1] | IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sh14x', b'lo', flags))


CALLS = []
RESULTS = {}
OFFERED = set()
LOCK = threading.Lock()


class Model(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.answer({'data': [], 'models': []})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get('content-length', 0))) or b'{}')
        if '/messages' in self.path and 'count_tokens' not in self.path:
            self.claude(asked)
        elif '/responses' in self.path:
            self.codex(asked)
        else:
            self.answer({'input_tokens': 1})

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header('content-type', 'text/event-stream')
        self.end_headers()
        for event in events:
            self.wfile.write(f'event: {event["type"]}\ndata: {json.dumps(event)}\n\n'.encode())
        self.close_connection = True

    def next_call(self, results):
        """Remember the results, and return the next call of the model with its number, or `None`."""
        with LOCK:
            RESULTS.update(results)
        done = len(RESULTS)
        return (done, *CALLS[done]) if done < len(CALLS) else None

    def last_words(self):
        return 'Done.'

    def claude(self, asked):
        tools = {each.get('name') for each in asked.get('tools') or []}
        OFFERED.update(tools)
        results = {
            part['tool_use_id']: part
            for message in asked.get('messages', [])
            if isinstance(message['content'], list)
            for part in message['content']
            if part.get('type') == 'tool_result'
        }
        found = self.next_call(results) if tools else None
        if found is None:
            delta = {'type': 'text_delta', 'text': self.last_words()}
            block, reason = {'type': 'text', 'text': ''}, 'end_turn'
        else:
            number, name, args = found
            block = {'type': 'tool_use', 'id': f'toolu_{number}', 'name': name, 'input': {}}
            delta, reason = {'type': 'input_json_delta', 'partial_json': json.dumps(args)}, 'tool_use'
        usage = {'input_tokens': 1, 'output_tokens': 1}
        message = {'id': 'msg_1', 'type': 'message', 'role': 'assistant', 'model': asked.get('model'), 'usage': usage}
        if not asked.get('stream'):
            self.answer({**message, 'content': [{'type': 'text', 'text': 'Done.'}], 'stop_reason': 'end_turn'})
            return
        begun = {**message, 'content': [], 'stop_reason': None, 'stop_sequence': None}
        self.stream(
            [
                {'type': 'message_start', 'message': begun},
                {'type': 'content_block_start', 'index': 0, 'content_block': block},
                {'type': 'content_block_delta', 'index': 0, 'delta': delta},
                {'type': 'content_block_stop', 'index': 0},
                {'type': 'message_delta', 'delta': {'stop_reason': reason, 'stop_sequence': None}, 'usage': usage},
                {'type': 'message_stop'},
            ]
        )

    def codex(self, asked):
        tools = {each.get('name') or each.get('type') for each in asked.get('tools') or []}
        OFFERED.update(tools)
        results = {
            each['call_id']: each for each in asked.get('input', []) if str(each.get('type', '')).endswith('_output')
        }
        found = self.next_call(results) if tools else None
        if found is None:
            text = {'type': 'output_text', 'text': 'Done.'}
            item = {'type': 'message', 'role': 'assistant', 'id': 'msg_1', 'content': [text]}
        else:
            number, name, args = found
            space, _, name = name.rpartition('/')
            known = {'id': f'fc_{number}', 'call_id': f'call_{number}', 'name': name, 'namespace': space or None}
            if isinstance(args, str):
                item = {'type': 'custom_tool_call', **known, 'input': args}
            else:
                item = {'type': 'function_call', **known, 'arguments': json.dumps(args)}
        usage = {
            'input_tokens': 1, 'input_tokens_details': None, 'output_tokens': 1, 'output_tokens_details': None,
            'total_tokens': 2,
        }  # fmt: skip
        self.stream(
            [
                {'type': 'response.created', 'response': {'id': 'resp_1'}},
                {'type': 'response.output_item.done', 'item': item},
                {'type': 'response.completed', 'response': {'id': 'resp_1', 'usage': usage}},
            ]
        )


def main():
    loopback_up()
    told = json.load(sys.stdin)
    CALLS.extend(told['calls'])
    server = ThreadingHTTPServer(('127.0.0.1', 8765), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = subprocess.run(
            told['command'],
            env={**os.environ, **told['environment']},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=told.get('timeout_s', 120),
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = None, error.stdout or b''
    found = {'status': status, 'output': output.decode(errors='replace'), 'results': RESULTS}
    json.dump({**found, 'offered': sorted(map(str, OFFERED))}, sys.stdout)


if __name__ == '__main__':
    main()

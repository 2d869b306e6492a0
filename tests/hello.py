"""A server on this machine that says hello."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'hello')

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def hello_server() -> Iterator[str]:
    """The address of the server, which runs meanwhile."""
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}/'
        server.shutdown()
        thread.join()

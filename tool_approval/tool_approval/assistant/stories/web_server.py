"""Run an empty web server on the loopback address, and print its port. Usage: `python web_server.py PORT`.

The server ends when its standard input is closed, so it never outlives the process that started it.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(wish: int) -> None:
    """Serve until standard input is closed. If the port `wish` is free, the server uses it."""
    try:
        server = ThreadingHTTPServer(('127.0.0.1', wish), BaseHTTPRequestHandler)
    except OSError:
        server = ThreadingHTTPServer(('127.0.0.1', 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    server.shutdown()
    server.server_close()


if __name__ == '__main__':  # pragma: no cover - a process of its own
    serve(int(sys.argv[1]))

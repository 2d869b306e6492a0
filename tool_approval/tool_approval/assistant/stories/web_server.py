"""A web server on the loopback that has nothing to serve: `python web_server.py PORT`.

It ends when its standard input does, so that it does not outlive whoever started it, however that one ended.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(port: int) -> None:
    """Serve until standard input ends."""
    server = ThreadingHTTPServer(('127.0.0.1', port), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()
    server.server_close()


if __name__ == '__main__':  # pragma: no cover - a process of its own
    serve(int(sys.argv[1]))

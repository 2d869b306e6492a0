"""A collector of OpenTelemetry on loopback."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class Collector:
    """The requests that a collector got."""

    def __init__(self, place):
        self.place = place
        """Address for the exporter."""
        self.got = []

    def spans(self):
        """All spans, in the form of the protocol."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        requests = [ExportTraceServiceRequest.FromString(body) for path, body in self.got if path == '/v1/traces']
        return [span for each in requests for r in each.resource_spans for s in r.scope_spans for span in s.spans]


@contextmanager
def collecting():
    """Run a collector."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers['Content-Length']))
            collector.got.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format, *args):
            pass

    server = HTTPServer(('127.0.0.1', 0), Handler)
    collector = Collector(f'http://127.0.0.1:{server.server_port}/v1/traces')
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join(timeout=60)
        server.server_close()

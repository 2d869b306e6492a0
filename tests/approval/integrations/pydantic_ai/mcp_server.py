"""A server of notes, as a program of its own: `python mcp_server.py FOLDER` on standard input and output."""

import sys
from pathlib import Path

from mcp.server import MCPServer


def notes_server(folder: Path) -> MCPServer:
    """Serve the notes of a folder; `.description` in it describes `write_note`."""
    server = MCPServer('notes')

    @server.tool()
    def read_note(name: str) -> str:
        return (folder / name).read_text()

    described = folder / '.description'

    @server.tool(description=described.read_text() if described.exists() else 'Write a note.')
    def write_note(name: str, text: str = 'empty') -> str:
        (folder / name).write_text(text)
        return f'wrote {name}'

    @server.tool()
    def delete_note(name: str) -> str:
        (folder / name).unlink()
        return f'deleted {name}'

    return server


if __name__ == '__main__':
    notes_server(Path(sys.argv[1])).run()

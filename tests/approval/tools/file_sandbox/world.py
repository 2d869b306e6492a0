"""What the tests of the file sandbox put together with."""

from tool_approval.tools.file_sandbox import FileSandbox, FileTools, perform

from tests.corpus.paths import load
from tool_approval import ApprovalContext

BASE, _ = load()
OVERLAPPING = {
    'paths': {
        'ws': {'root': '.', 'mode': 'rw', 'write_approval': False},
        'ref': {'root': './ref', 'mode': 'ro'},
        'notes': {'root': './notes', 'mode': 'rw', 'write_approval': True},
    }
}


class World:
    """Directories to try things in."""

    def __init__(self, top):
        self.top = top
        self.ws = top / 'ws'

    def sandbox(self, config=BASE, **options):
        return FileSandbox(config, self.ws, **options)

    def tools(self, config=BASE, **options):
        return FileTools(self.sandbox(config, **options))

    def decide(self, operation, path, dest=None, config=BASE):
        """The outcome alone."""
        return self.sandbox(config).decide(operation, path, dest).outcome

    def do(self, operation, path, dest=None, config=BASE, expected=None, **arguments):
        """Judge and do, as if a person had consented to whatever there is."""
        sandbox = self.sandbox(config)
        with sandbox.open(operation, path, dest) as access:
            return perform(sandbox, access, arguments, expected)


def context(name, **args):
    return ApprovalContext(tool_name=name, args=args)


def do(tools, name, **args):
    """Judge and run a call, as if whatever is asked were approved."""
    tools.check_approval(context(name, **args))
    return tools.run(name, args)

"""`python -m tool_approval.cli`."""

import sys

from .program import main

sys.exit(main())

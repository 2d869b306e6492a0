"""Run the program for `python -P -m tool_approval.cli`.

Without `-P`, Python would import modules of the working directory first.
"""

import sys

from .program import main

sys.exit(main())

"""Run the program when it is started as `python -P -m tool_approval.cli`.

Without `-P`, Python would import modules of the working directory first.
"""

import sys

from .program import main

sys.exit(main())

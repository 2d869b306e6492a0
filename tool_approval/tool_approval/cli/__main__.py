"""`python -P -m tool_approval.cli`: without `-P`, modules of the working directory are imported before this runs."""

import sys

from .program import main

sys.exit(main())

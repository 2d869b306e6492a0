"""The agent behind `tool-approval run`, and the stories of `tool-approval demo`."""

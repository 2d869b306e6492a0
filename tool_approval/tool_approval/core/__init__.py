"""Decide whether a tool call may run. Import what is public from `tool_approval`."""

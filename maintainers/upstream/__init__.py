"""The loop layer's change as commits for Pydantic AI itself. See README.md in this folder."""

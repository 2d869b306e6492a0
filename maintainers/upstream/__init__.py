"""The loop layer's change as a patch for Pydantic AI's own tree. See README.md in this folder."""

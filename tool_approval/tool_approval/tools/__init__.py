"""File and shell tools that check each call against rules before the call runs."""

"""Connect this library to agent frameworks. Each framework is imported only by its own package."""

"""Connect this library to agent frameworks. Each framework has its own package, and only that package imports it."""

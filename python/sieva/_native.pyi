"""The native module: the engine's types for Python."""

__version__: str

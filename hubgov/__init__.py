"""hubgov: GPU governance for people who work in notebooks."""

__version__ = "0.1.0"

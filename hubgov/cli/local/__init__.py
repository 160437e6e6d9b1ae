"""Verbs that work on this machine without the public interface; loaded only when one of them is called."""

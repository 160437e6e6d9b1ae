"""Use cases, one unit of work each: decide, write, commit, then act."""

"""Joining a hub that is there already, and looking whether all is well with it: `hubgov init`, `hubgov doctor`."""

"""The verbs of the command line that ask the service, a module for each kind of them."""

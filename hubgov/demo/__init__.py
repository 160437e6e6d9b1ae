"""JupyterHub with hubgov on one box: what `./deploy/up` runs after the installation."""

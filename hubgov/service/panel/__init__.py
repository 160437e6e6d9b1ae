"""What the panel's pages show, as values: who holds what, the lines, open requests, nodes, the audit."""

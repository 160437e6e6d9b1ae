"""What do the devices of this node say about themselves? Probes, their readings, and which one to use."""

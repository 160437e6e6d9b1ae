"""What runs things: each engine starts, stops and watches what was granted, and knows nothing of quota."""

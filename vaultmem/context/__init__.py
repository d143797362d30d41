"""What goes to an agent unasked: the block of context at the start of its session."""

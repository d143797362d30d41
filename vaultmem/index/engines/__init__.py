"""Full-text engines behind one protocol, and the best matches without scoring all."""

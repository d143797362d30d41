"""The graph of notes: a view from the index, and exports of it."""

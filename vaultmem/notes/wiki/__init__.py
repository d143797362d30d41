"""The native wiki's layout and texts."""

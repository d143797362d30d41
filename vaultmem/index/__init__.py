"""index.db: rebuildable views of the notes; deleted at any moment, rebuilt with the same answers."""

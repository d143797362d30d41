"""state.db: what no rebuild can restore."""

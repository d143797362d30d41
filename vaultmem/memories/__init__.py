"""Storing and forgetting; begin with `store`."""

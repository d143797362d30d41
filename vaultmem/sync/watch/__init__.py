"""Keeping the index equal while files change; begin with `keeper`."""

"""A query to ranked hits; begin with `recall`."""

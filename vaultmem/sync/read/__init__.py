"""Changed files to facts, here or in reader processes; begin with `read`."""

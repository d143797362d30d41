"""The leaves that everything stands on: values, errors, times and the one clock, files and locks, characters."""

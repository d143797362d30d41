"""Pure reading of notes: no file, clock or log is touched in this room."""

"""One use case a file: what a face asks for, done with the rooms below."""

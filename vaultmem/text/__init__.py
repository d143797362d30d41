"""Text to terms and snippets, for documents and queries alike."""

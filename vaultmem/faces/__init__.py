"""Faces: command line, and later MCP and HTTP. Thin: arguments in, results out."""

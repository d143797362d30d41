"""The MCP server: tools for agents over stdio or loopback HTTP."""

"""Wikilinks, where they lead, and the relationships that follow."""

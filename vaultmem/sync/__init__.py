"""Vault files to index: scan, plan, reconcile, freshness, watch."""

"""How the home stands: status, doctor, findings, rebuild."""

"""What the index must do, decided purely."""

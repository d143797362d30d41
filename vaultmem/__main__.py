"""`python -m vaultmem` is the command `vaultmem`."""

from vaultmem.faces.cli.app import main

if __name__ == "__main__":
    main()

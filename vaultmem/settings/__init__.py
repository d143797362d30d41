"""config.toml and the environment; begin with `config`."""

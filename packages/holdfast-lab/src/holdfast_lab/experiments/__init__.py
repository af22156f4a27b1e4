"""The experiments: each a config file NAME.toml, and beside it a module that measures and draws.

`holdfast lab list` lists them, `holdfast lab run NAME` runs one. `base` says what a module has.
"""

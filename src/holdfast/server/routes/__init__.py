"""The addresses of the server, by what they are for."""

from __future__ import annotations

"""Analysts who try to be told wrong numbers, and the methods that answer them."""

from __future__ import annotations

"""Populations that are real: every row is known, so that every truth is."""

from __future__ import annotations

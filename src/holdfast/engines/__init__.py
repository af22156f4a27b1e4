"""Engines: the blocks on disk, and what evaluates an estimator on each of them by itself."""

from __future__ import annotations

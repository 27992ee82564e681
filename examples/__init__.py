"""Worked examples; see docs/examples.md."""

"""Benchmarks: `tracked` from commit to commit, `compare` beside other code.

docs/benchmarks.md says how to run them.
"""

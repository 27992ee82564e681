"""One file per method of the paper."""

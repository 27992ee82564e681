"""Files of data: what is in them is read, checked and never executed."""

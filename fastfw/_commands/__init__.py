"""What the command line can do, a module for each command."""

"""The version of the package, apart so that what is below its face can write it into files."""

__version__ = "0.1.0"

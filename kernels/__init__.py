"""Compiled kernels of fastfw: no validation, no policy, no state.

The folder stands at the top of the source tree and is installed as
``fastfw.kernels``; another distribution owns the import name ``kernels``.
"""

if __name__ != "fastfw.kernels":
    raise ImportError(
        f"these are fastfw's kernels, imported here as {__name__!r}: "
        "install the package (pip install -e .) and import fastfw.kernels"
    )

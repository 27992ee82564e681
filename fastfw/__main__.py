"""Where the command begins: ``fastfw``, and ``python -m fastfw``, which is the same."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; Ctrl-C is one line even while it is still imported."""
    try:
        from fastfw import cli

        return cli.main()
    except KeyboardInterrupt:
        from contextlib import suppress

        if sys.stderr is not None:
            with suppress(OSError):  # nobody is left to tell
                print("fastfw: interrupted", file=sys.stderr, flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main())

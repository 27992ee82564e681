"""Commands that are stopped by a signal while they write a file."""

import subprocess
import sys

SCRIPT = """\
import os, signal, sys
from fastfw import _files
from fastfw.cli import main
# a job that a script started in the background ignores this signal from the outset
signal.signal(signal.SIGINT, signal.default_int_handler)
count, number, *arguments = sys.argv[1:]
replace, written = os.replace, []
def stopped(*names):
    written.append(names)
    if len(written) == int(count):
        os.kill(os.getpid(), int(number))
    replace(*names)
os.replace = stopped
sys.exit(main(arguments))
"""


def stop_while_writing(count, signal, arguments):
    """Run a command that gets a signal just before its file number `count` is moved into place."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count), str(int(signal)), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

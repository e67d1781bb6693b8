# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line: `python -m beeline`, and the command `beeline`."""

import signal


def start() -> None:
    """Runs the command line. Ctrl-C while its modules are loaded ends it without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from beeline.cli import main

    main()


if __name__ == "__main__":
    start()

# SPDX-License-Identifier: Apache-2.0
"""The command line of a fake application: options common to all, its description, its methods."""

import argparse
import json
import sys

COMMON = ("help", "list", "describe")


def parse(name, methods, **options):
    """Parses the arguments. Ends the program after --describe, and after --list, which prints `methods`: reasons why
    they are not available, by name. `options` are defaults, or types of options without a default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--describe")
    parser.add_argument("--method", default="all")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--energy", type=float)
    for option, default in options.items():
        if default is False:
            parser.add_argument(f"--{option}", action="store_true")
        elif isinstance(default, type):
            parser.add_argument(f"--{option}", type=default)
        else:
            parser.add_argument(f"--{option}", type=type(default), default=default)
    arguments = parser.parse_args()
    if arguments.describe:
        described = [
            {
                "name": one.option_strings[0].removeprefix("--"),
                "type": "flag" if one.nargs == 0 else "TEXT",
                "help": f"help on {one.dest}",
                "default": None if one.nargs == 0 or one.default is None else str(one.default),
            }
            for one in parser._actions
            if one.dest not in COMMON
        ]
        print(json.dumps({"name": name, "summary": f"About {name}", "options": described}))
        sys.exit(0)
    if arguments.list:
        for method, reason in methods.items():
            line = {"event": "method", "name": method, "summary": "", "available": reason is None, "reason": reason}
            print(json.dumps(line))
        sys.exit(0)
    return arguments

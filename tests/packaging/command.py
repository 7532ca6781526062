"""The command line of a check that reads files of the tree: it prints one line for each finding."""

import argparse
import importlib
import pathlib
import sys


def main(text, findings, faults, option, **described):
    """Exits with status 1 if there are findings. `text`: the help. `findings(tree, value)` gives them; `value` is that
    of `option`, which `described` describes to argparse, or None. With --self-test `judge(tree, findings)` of the
    module `faults` gives them instead. It is imported only then: it may import its caller."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument(option, dest="value", **described)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        found = importlib.import_module(faults).judge(options.tree, findings)
    else:
        found = list(findings(options.tree, options.value))
    for finding in found:
        print(finding)
    print(f"{len(found)} findings")
    sys.exit(1 if found else 0)

#!/usr/bin/env python3
"""Writes for the lab's page what makes its core the variant without the check of the numbers (lab/unchecked.cc).

  unchecked.py BUILD_FOLDER UNCHECKED.js

It is compiled again only if that file or the core has changed.
"""

import base64
import sys

import pieces
import variant


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    patch, _ = pieces.Museum(sys.argv[1]).difference("unchecked")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f'LeaseLab.unchecked = "{base64.b64encode(patch).decode()}";\n')
    print(f"without the check of the numbers: {len(patch)} bytes")


if __name__ == "__main__":
    try:
        main()
    except (pieces.MuseumError, variant.VariantError) as error:
        sys.exit(f"unchecked.py: {error}")

#!/bin/bash
# Writes pages about the public headers, those of cmake/public_headers.txt, to OUT/html: docs/doxygen.sh OUT
# Any warning is an error.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
{
  cat docs/Doxyfile
  echo "OUTPUT_DIRECTORY = \"$1\""
  sed -n '/^\[private\]/,$d; /^[a-z]/s/^/INPUT += /p' cmake/public_headers.txt
} | doxygen -

# shellcheck shell=bash
# Makes the temporary folder `work` of a script, which goes when that ends.  Sourced by it, in the project's folder.
# While the script runs it has the folder's lock; what a killed one left, the next command of Strata's removes
# (strata/util/programs.py).
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-scratch-XXXXXXXX")
exec 9<"$work"
flock --nonblock 9
here=$PWD
remove='import sys; from strata.util.files import remove_tree; remove_tree(sys.argv[1])'
trap 'cd "$here" && python3 -S -c "$remove" "$work"' EXIT

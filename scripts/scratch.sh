# shellcheck shell=bash
# Makes a temporary folder, whose path is in `work`, for the script that sources this file in the
# project's folder; it is removed when the script ends.  The script holds the folder's lock.  After
# a kill, the next command of Strata finds the lock free and removes the folder
# (strata/util/programs.py).
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-scratch-XXXXXXXX")
exec 9<"$work"
flock --nonblock 9
here=$PWD
remove='import sys; from strata.util.files import remove_tree; remove_tree(sys.argv[1])'
trap 'cd "$here" && python3 -S -c "$remove" "$work"' EXIT

# What the demos share: how they print and run commands. Sourced by them, with `work` set to a
# folder for logs before run_quietly is used.

say() { printf '\n== %s\n' "$*"; }
run() {
  printf '$ %s\n' "$*"
  "$@"
}
# For what prints pages of progress: quiet, unless it fails.
run_quietly() {
  printf '$ %s\n' "$*"
  "$@" >"$work/log" 2>&1 || { local status=$?; tail -n 40 "$work/log"; return $status; }
}
fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

need_root_and_fuse() {
  [ "$(id -u)" -eq 0 ] || fail "needs root: it installs, and it mounts"
  [ -e /dev/fuse ] || fail "/dev/fuse is missing: load the fuse module or give it to the container"
}

# A release build below /usr/local.
install_release() {
  run_quietly cmake --preset release
  run_quietly cmake --build build/release
  run_quietly cmake --install build/release --prefix /usr/local
}

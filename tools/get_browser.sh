#!/bin/sh
# What the tests of the page need besides Python: Chromium (Debian's packages) and axe-core (npm), the latter into the folder $1.
# Where one cannot be had, says so; the tests that need it are skipped.
set -u
folder="$1"
if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo -n"
    if command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        $as_root apt-get install -y -q --no-install-recommends chromium >"${TMPDIR:-/tmp}/chromium.log" 2>&1 ||
            { $as_root apt-get update -q && $as_root apt-get install -y -q --no-install-recommends chromium; } \
                >"${TMPDIR:-/tmp}/chromium.log" 2>&1
    fi
    command -v chromium >/dev/null || echo "Chromium could not be installed; the tests of the page are skipped." >&2
fi
if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
    mkdir -p "$folder"
    npm install --silent --no-save --no-audit --no-fund --prefix "$folder" axe-core@4.14.0 >/dev/null 2>&1 ||
        echo "axe-core could not be installed; its tests are skipped." >&2
fi

#!/bin/sh
# Builds the Gitea server that TestGitea asks, from its Go module, into a
# directory: sh build-gitea.sh DIR; RUTTER_GITEA=DIR go test ./internal/forge
set -eu
dir=$1
version=v1.27.3
mkdir -p "$dir"
from=$(go mod download -json "code.gitea.io/gitea@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
# A copy: its go.mod replaces modules, which only a main module may. The server
# reads its templates from there, too.
rm -rf "$dir/src"
cp -r "$from" "$dir/src"
chmod -R u+w "$dir/src"
cd "$dir/src"
go build -tags "sqlite sqlite_unlock_notify" -o "$dir/gitea" .

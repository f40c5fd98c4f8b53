#!/bin/sh
# inside.sh TREE ACCOUNT COMMAND [ARGUMENT...]
#
# Runs a command in the file tree of Kerf's image as a pod of the chart would, where no container can run: as user
# 65532 on a read-only root, in the environment of the image, with the folder ACCOUNT (token, ca.crt, namespace) where a
# pod finds its service account. Of this machine it sees the network, /proc and /dev. Needs root, for the mounts, which
# end with the command.
set -eu
exec unshare --mount --propagation=private /bin/sh -euc '
  tree=$1 account=$2 there=$1/run/secrets/kubernetes.io/serviceaccount
  shift 2
  mount --bind "$tree" "$tree"
  for each in proc dev; do mount --rbind "/$each" "$tree/$each"; done
  mount -t tmpfs -o size=1m,mode=755 tmpfs "$tree/run"
  mkdir -p "$there"
  cp "$account"/* "$there/"
  chown -R 65532:65532 "$there"
  mount -o remount,ro "$tree/run"
  mount -o remount,bind,ro "$tree"
  exec chroot --userspec=65532:65532 "$tree" \
    /usr/bin/env -i PATH=/opt/kerf/bin:/usr/bin:/bin HOME=/ PYTHONDONTWRITEBYTECODE=1 "$@"
' inside.sh "$@"

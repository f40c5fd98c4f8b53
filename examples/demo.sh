#!/bin/sh
# Shows documents 000, 003 and 004: what would be bought and why, then the same controllers over an hour of virtual time.
set -eu
cd "$(dirname "$0")/.."

# Exit code 3 means: done, and something needs a look. Here that is the point.
show() {
    printf '\n$ %s\n' "$*"
    "$@" || [ $? -eq 3 ]
}

echo "== 000: five GPU pods, one node. The pool's cpu limit is the cause, not the instance types."
show kerf plan -f examples/000-gpu-pools/pool.yaml -f examples/000-gpu-pools/workload.yaml
show kerf simulate examples/000-gpu-pools/scenario.yaml

echo
echo "== 003: HAMi slices. Two pods share a card, the third gets its own; 0 -> 3 -> 1 replicas."
show kerf plan -f examples/003-hami/nodepool.yaml -f examples/003-hami/workload.yaml -f examples/003-hami/nodeoverlay.yaml \
    --replicas deployment/default/gpu-inference=3 -o wide
show kerf simulate examples/003-hami/scenario.yaml

echo
echo "== 004: an ACK pool, 2 -> 3 -> 1 replicas, in CNY."
show kerf plan -f examples/004-ack/nodepool.yaml -f examples/004-ack/workload.yaml --catalog alibaba:cn-shanghai
show kerf simulate examples/004-ack/scenario.yaml

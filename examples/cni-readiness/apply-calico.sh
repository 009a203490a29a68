#!/bin/sh
# apply-calico.sh [MANIFEST]
#
# Installs Calico from a manifest (a path or a URL; without one, Calico's own of the version
# below), and the reporter DaemonSet beside it.
#
# Variables: CALICO_VERSION; KUBECTL, the command to use.
set -eu
cd "$(dirname "$0")"

CALICO_VERSION=${CALICO_VERSION:-v3.32.1}
KUBECTL=${KUBECTL:-kubectl}
manifest=${1:-https://raw.githubusercontent.com/projectcalico/calico/$CALICO_VERSION/manifests/calico.yaml}
case $manifest in
  *://* | /*) ;;
  *) manifest=$OLDPWD/$manifest ;; # a path is seen from where you are
esac

step() { printf '\n==> %s\n' "$*"; }

step "Calico from $manifest"
$KUBECTL apply -f "$manifest"

step "The reporter may write node conditions"
$KUBECTL apply -f calico-rbac-node-status-patch-role.yaml

step "The reporter, and what its account is limited to"
$KUBECTL apply -f cni-reporter-ds.yaml -f cni-reporter-policy.yaml

step "Done. Watch the condition appear on each node:"
echo "kubectl get nodes -o custom-columns='NAME:.metadata.name,CALICO:.status.conditions[?(@.type==\"projectcalico.org/CalicoReady\")].status,TAINTS:.spec.taints[*].key'"

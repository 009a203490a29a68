#!/bin/sh
# apply-calico.sh [MANIFEST]
#
# Installs Calico from a manifest and the reporter as a DaemonSet.
#
# MANIFEST is a path or a URL; default: $CALICO_MANIFEST, else Calico's own VXLAN manifest of $CALICO_VERSION. With
# calico.yaml (BIRD, BGP) /readiness proves nothing about routes: it covers Felix only.
#
# Variables: REGISTRY, the registry that has the image of the reporter; CALICO_MANIFEST; CALICO_VERSION; KUBECTL, the
# command to use.
set -eu
cd "$(dirname "$0")"

CALICO_VERSION=${CALICO_VERSION:-v3.32.1}
KUBECTL=${KUBECTL:-kubectl}
REGISTRY=${REGISTRY:-registry.example.com}
manifest=${1:-${CALICO_MANIFEST:-https://raw.githubusercontent.com/projectcalico/calico/$CALICO_VERSION/manifests/calico-vxlan.yaml}}
case $manifest in
  *://* | /*) ;;
  *) manifest=$OLDPWD/$manifest ;; # a path is relative to the caller's directory
esac

step() { printf '\n==> %s\n' "$*"; }
with_registry() { sed "s|registry\.example\.com|$REGISTRY|" "$1"; }

step "Calico from $manifest"
$KUBECTL apply -f "$manifest"

step "The role that lets the reporter write node conditions"
$KUBECTL apply -f calico-rbac-node-status-patch-role.yaml

step "The reporter, and the policy that limits its account"
$KUBECTL apply -f cni-reporter-policy.yaml
with_registry cni-reporter-ds.yaml | $KUBECTL apply -f -

step "Done. When the condition is True on each node, apply network-readiness-rule.yaml:"
echo "kubectl get nodes -o custom-columns='NAME:.metadata.name,CALICO:.status.conditions[?(@.type==\"projectcalico.org/CalicoReady\")].status,TAINTS:.spec.taints[*].key'"

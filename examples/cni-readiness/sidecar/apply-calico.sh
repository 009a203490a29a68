#!/bin/sh
# apply-calico.sh [MANIFEST]
#
# Installs Calico from a manifest and adds the reporter to its DaemonSet as a sidecar.
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

# The kubelet starts containers in the order of the list. A strategic merge would put the reporter first and delay Calico.
step "The reporter as a sidecar of calico-node, after calico-node in the list"
patch=$(mktemp)
trap 'rm -f "$patch"' EXIT
{
  printf 'spec:\n  template:\n    metadata:\n      annotations:\n        kubectl.kubernetes.io/default-container: calico-node\n    spec:\n'
  printf '      $setElementOrder/containers:\n      - name: calico-node\n      - name: cni-status-patcher\n      containers:\n'
  with_registry cni-patcher-sidecar.yaml | sed 's/^/      /'
} >"$patch"
$KUBECTL patch daemonset calico-node --namespace kube-system --type strategic --patch-file "$patch"

step "Done. When the condition is True on each node, apply network-readiness-rule.yaml:"
echo "kubectl get nodes -o custom-columns='NAME:.metadata.name,CALICO:.status.conditions[?(@.type==\"network.k8s.io/CalicoReady\")].status,TAINTS:.spec.taints[*].key'"

#!/bin/sh
# apply-calico.sh [MANIFEST]
#
# Installs Calico from a manifest (a path or a URL; without one, Calico's own of the version
# below), and adds the reporter to its DaemonSet as a sidecar.
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

# Kubelets start containers in the order of the list, and a merge would put the reporter first: Calico would start later.
step "The reporter as a sidecar of calico-node, after it"
patch=$(mktemp)
trap 'rm -f "$patch"' EXIT
{
  printf 'spec:\n  template:\n    metadata:\n      annotations:\n        kubectl.kubernetes.io/default-container: calico-node\n    spec:\n'
  printf '      $setElementOrder/containers:\n      - name: calico-node\n      - name: cni-status-patcher\n      containers:\n'
  sed 's/^/      /' cni-patcher-sidecar.yaml
} >"$patch"
$KUBECTL patch daemonset calico-node --namespace kube-system --type strategic --patch-file "$patch"

step "Done. Watch the condition appear on each node:"
echo "kubectl get nodes -o custom-columns='NAME:.metadata.name,CALICO:.status.conditions[?(@.type==\"network.k8s.io/CalicoReady\")].status,TAINTS:.spec.taints[*].key'"

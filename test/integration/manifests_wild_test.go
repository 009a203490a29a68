package integration_test

// everyLeaf lists the fields that the manifests below must use, together.
var everyLeaf = []string{
	".spec.conditions[].type",
	".spec.conditions[].requiredStatus=True",
	".spec.conditions[].requiredStatus=False",
	".spec.conditions[].requiredStatus=Unknown",
	".spec.conditions[].defaultStatus=True",
	".spec.conditions[].defaultStatus=False",
	".spec.conditions[].defaultStatus=Unknown",
	".spec.conditionPolicy=allOf",
	".spec.conditionPolicy=anyOf",
	".spec.taint.key",
	".spec.taint.value",
	".spec.taint.timeAdded",
	".spec.taint.effect=NoSchedule",
	".spec.taint.effect=PreferNoSchedule",
	".spec.taint.effect=NoExecute",
	".spec.enforcementMode=bootstrap-only",
	".spec.enforcementMode=continuous",
	".spec.nodeSelector.matchLabels.wild",
	".spec.nodeSelector.matchExpressions[].key",
	".spec.nodeSelector.matchExpressions[].operator=In",
	".spec.nodeSelector.matchExpressions[].operator=NotIn",
	".spec.nodeSelector.matchExpressions[].operator=Exists",
	".spec.nodeSelector.matchExpressions[].operator=DoesNotExist",
	".spec.nodeSelector.matchExpressions[].values[]",
	".spec.dryRun=true",
	".spec.dryRun=false",
}

// wild are typical rules of users. Each selects a label that no node of these tests has.
var wild = map[string]string{
	"storage, several conditions and a preview": `
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: wild-nfs-storage-readiness-rule
spec:
  conditions:
    - type: "csi.example.net/NodePluginRegistered"
      requiredStatus: "True"
    - type: "csi.example.net/BackendReachable"
      requiredStatus: "True"
    - type: "DiskPressure"
      requiredStatus: "False"
  taint:
    key: "readiness.k8s.io/wild-nfs-unhealthy"
    effect: "NoSchedule"
  enforcementMode: "bootstrap-only"
  nodeSelector:
    matchLabels:
      wild: "nfs"
  dryRun: true  # Preview mode
`,
	"a problem that is absent until reported": `
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: wild-maintenance-gate
spec:
  conditions:
    - type: "MaintenanceRequired"
      requiredStatus: "False"
      defaultStatus: "False"
    - type: "example.com/Seen"
      requiredStatus: "True"
      defaultStatus: "True"
    - type: "example.com/Judged"
      requiredStatus: "Unknown"
      defaultStatus: "Unknown"
  taint:
    key: "readiness.k8s.io/wild-problem-gate"
    effect: "NoSchedule"
  enforcementMode: "continuous"
  nodeSelector:
    matchLabels:
      wild: maintenance
`,
	"a custom plugin, away from the control plane": `
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: wild-my-component-readiness-rule
spec:
  conditions:
    - type: "CustomCondition/MyComponentNotReady"
      requiredStatus: "False"   # Remove taint when component is NOT unhealthy
  taint:
    key: "readiness.k8s.io/wild-my-component-ready"
    effect: "NoSchedule"
    value: "false"
  enforcementMode: "continuous"  # Re-taint if component fails again
  nodeSelector:
    matchExpressions:
      - key: node-role.kubernetes.io/control-plane
        operator: DoesNotExist
      - key: wild
        operator: Exists
`,
	"GPU nodes, one of two drivers, every operator": `
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: wild-gpu
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations:
    meta.helm.sh/release-name: readiness-rules
spec:
  conditionPolicy: anyOf
  conditions:
  - {type: nvidia.com/DriverReady, requiredStatus: "True"}
  - {type: amd.com/DriverReady, requiredStatus: "True"}
  taint: {key: readiness.k8s.io/wild-gpu, value: "", effect: PreferNoSchedule}
  enforcementMode: continuous
  nodeSelector:
    matchLabels: {wild: gpu}
    matchExpressions:
    - {key: node.kubernetes.io/instance-type, operator: In, values: [p4d.24xlarge, p5.48xlarge]}
    - {key: eks.amazonaws.com/compute-type, operator: NotIn, values: [fargate, auto]}
    - {key: nvidia.com/gpu.present, operator: Exists}
    - {key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}
`,
	"a taint that the autoscaler ignores": `
kind: NodeReadinessRule
apiVersion: readiness.node.x-k8s.io/v1alpha1
metadata:
  name: wild-managed-cloud
spec:
  nodeSelector:
    matchExpressions:
      - operator: In
        values: ["cloud"]
        key: wild
  dryRun: false
  enforcementMode: bootstrap-only
  conditionPolicy: allOf
  taint:
    effect: NoSchedule
    key: startup-taint.cluster-autoscaler.kubernetes.io/wild-network
  conditions:
    - requiredStatus: 'True'
      type: NetworkReady
`,
	"a taint copied from a node": `
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  creationTimestamp: null
  name: wild-copied
spec:
  conditions:
  - requiredStatus: "True"
    type: security.example.com/AgentReady
  enforcementMode: continuous
  nodeSelector:
    matchLabels:
      wild: copied
      kubernetes.io/os: linux
  taint:
    effect: NoExecute
    key: readiness.k8s.io/wild-security
    timeAdded: "2026-01-31T12:00:00Z"
    value: pending
status: {}
`,
	"JSON": `{"apiVersion": "readiness.node.x-k8s.io/v1alpha1", "kind": "NodeReadinessRule",
"metadata": {"name": "wild-json"}, "spec": {
"conditions": [{"type": "Ready", "requiredStatus": "True"}, {"type": "NetworkUnavailable", "requiredStatus": "False"}],
"taint": {"key": "readiness.k8s.io/wild-json", "value": "pending", "effect": "NoSchedule"},
"enforcementMode": "bootstrap-only", "nodeSelector": {"matchLabels": {"wild": "json"}}}}
`,
}

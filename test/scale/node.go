package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/testenv"
)

const (
	images      = 50
	labels      = 25
	annotations = 15
)

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
}

// newNode returns a node of the size that a kubelet in a cloud registers: images, addresses, conditions, and together
// 40 labels and annotations.
func newNode(i int, now time.Time) *corev1.Node {
	name := nodeName(i)
	node := testenv.Node(name, map[string]string{
		"pool":                           pool,
		corev1.LabelHostname:             name,
		corev1.LabelArchStable:           "amd64",
		corev1.LabelOSStable:             "linux",
		corev1.LabelInstanceTypeStable:   "m6i.4xlarge",
		corev1.LabelTopologyRegion:       "eu-central-1",
		corev1.LabelTopologyZone:         fmt.Sprintf("eu-central-1%c", 'a'+i%3),
		"example.com/machine-id":         fmt.Sprintf("i-%017x", i*7919),
		"topology.ebs.csi.aws.com/zone":  fmt.Sprintf("eu-central-1%c", 'a'+i%3),
		"node.kubernetes.io/nodegroup":   fmt.Sprintf("workers-%d", i%10),
		"example.com/kernel-version":     "6.12.41-63.114",
		"example.com/image-id":           "ami-0c2fab6714fd10eaa",
		"failure-domain.example.com/row": fmt.Sprintf("row-%d", i%20),
	})
	for k := len(node.Labels); k < labels; k++ {
		node.Labels[fmt.Sprintf("feature.node.example.com/cpu-feature.%02d", k)] = "true"
	}
	node.Annotations = map[string]string{}
	for k := range annotations {
		node.Annotations[fmt.Sprintf("agent-%02d.example.com/state", k)] = fmt.Sprintf(`{"driver":"csi-%02d.example.com","nodeID":"i-%017x"}`, k, i*7919)
	}
	node.Spec.ProviderID = fmt.Sprintf("aws:///eu-central-1a/i-%017x", i*7919)
	node.Spec.PodCIDR = fmt.Sprintf("10.%d.%d.0/24", 128+i>>8, i&255)
	node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
	node.Status = statusOf(i, name, now)
	return node
}

func statusOf(i int, name string, now time.Time) corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64922776Ki"),
		corev1.ResourcePods: resource.MustParse("234"), corev1.ResourceEphemeralStorage: resource.MustParse("104845292Ki"),
		"hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
	status := corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Conditions:  kubeletConditions(now),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
			{Type: corev1.NodeInternalDNS, Address: name}, {Type: corev1.NodeHostName, Address: name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: fmt.Sprintf("%032x", i), SystemUUID: fmt.Sprintf("ec2%029x", i), BootID: fmt.Sprintf("%08x-1c2f-4e50-9c6d-0123456789ab", i),
			KernelVersion: "6.12.41-63.114", OSImage: "Example Linux 2026", ContainerRuntimeVersion: "containerd://2.4.2",
			KubeletVersion: "v1.37.0", OperatingSystem: "linux", Architecture: "amd64",
		},
	}
	for k := range images {
		repository := fmt.Sprintf("registry.example.com/platform/team-%d/service-%02d", k%7, k)
		status.Images = append(status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%064x", repository, k*104729), fmt.Sprintf("%s:v1.%d.0", repository, k)},
			SizeBytes: int64(20+k) << 20,
		})
	}
	return status
}

// kubeletConditions returns the conditions that every kubelet reports, with this heartbeat time.
func kubeletConditions(now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", "the network of the node is set up"),
	}
}

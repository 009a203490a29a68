package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// images is how many a kubelet reports, and names how many names of each.
const (
	images = 50
	names  = 5
)

// newNode makes a node as large as one that has run pods for a while, and returns its size
// as JSON.
func (l *lab) newNode(ctx context.Context, name string) (size int, err error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
		"node.kubernetes.io/instance-type": "m6i.2xlarge", "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": "eu-central-1a",
	}}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.17.4"}, {Type: corev1.NodeHostName, Address: name}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity
	for _, kubelets := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kubelets, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			Reason: "KubeletHasNoProblem", Message: "kubelet has no such problem",
		})
	}
	for i := range images {
		node.Status.Images = append(node.Status.Images, image(i))
	}
	made, err := l.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("creating a node: %w", err)
	}
	data, err := json.Marshal(made)
	return len(data), err
}

// image is an image under several names: of a digest, and of tags.
func image(i int) corev1.ContainerImage {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i)}))
	repository := fmt.Sprintf("%012d.dkr.ecr.eu-central-1.amazonaws.com/platform/%s/component-%02d", 123456789012, strings.Repeat("team-", 8)+"x", i)
	all := []string{repository + "@sha256:" + digest}
	for tag := range names - 1 {
		all = append(all, fmt.Sprintf("%s:v1.%d.%d-%s", repository, i, tag, digest[:40]))
	}
	return corev1.ContainerImage{Names: all, SizeBytes: 100_000_000 + int64(i)}
}

//go:build ignore

package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/mount-utils"
	"k8s.io/utils/ptr"
)

// The kubelet's own volume manager loses updates of downward API volumes when many pods are synced at
// once: the reason why podgate writes the key of a latch again. This test prints how many are lost, and
// how many of them one more sync of the pod delivers. It is run by hand, as for a new version of Kubernetes:
//
//	CGO_ENABLED=0 go -C hack/kube test -trimpath -v downwardapi_test.go
func TestUpdatesOfDownwardAPIVolumes(t *testing.T) {
	const pods, rounds = 100, 5
	n := newNode(t)
	for i := range pods {
		n.update(i, "first")
	}
	n.each(pods, func(i int) { n.sync(i) })
	lost, undelivered := 0, 0
	gaps := []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	for _, gap := range gaps {
		stale := 0
		for round := range rounds {
			want := fmt.Sprintf("%v, round %d", gap, round)
			n.each(pods, func(i int) {
				time.Sleep(rand.N(500 * time.Millisecond))
				n.sync(i) // a container of the pod started, say
				time.Sleep(gap)
				n.update(i, want)
				n.sync(i)
			})
			time.Sleep(1500 * time.Millisecond) // populator and reconciler run every 100 ms
			for i := range pods {
				if n.read(i) == want {
					continue
				}
				stale++
				n.sync(i)
				time.Sleep(600 * time.Millisecond)
				if n.read(i) != want {
					undelivered++
				}
			}
		}
		t.Logf("update %v after another sync of the pod: %d of %d lost", gap, stale, rounds*pods)
		lost += stale
	}
	if undelivered > 0 {
		t.Errorf("%d updates were not delivered after one more sync", undelivered)
	}
	t.Logf("%d of %d updates lost, %d of them also after one more sync", lost, len(gaps)*rounds*pods, undelivered)
}

// node is the volume manager of a kubelet, and its pods.
type node struct {
	t       *testing.T
	dir     string
	volumes volumemanager.VolumeManager
	mu      sync.RWMutex
	pods    map[types.UID]*corev1.Pod
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), pods: map[types.UID]*corev1.Pod{}}
	client, plugins := fake.NewClientset(), append(downwardapi.ProbeVolumePlugins(), emptydir.ProbeVolumePlugins()...)
	manager := &volume.VolumePluginMgr{}
	if err := manager.InitPlugins(plugins, nil, volumetesting.NewFakeKubeletVolumeHost(t, n.dir, client, plugins)); err != nil {
		t.Fatal(err)
	}
	n.volumes = volumemanager.NewVolumeManager(true, "n1", n, n, client, manager, mount.NewFakeMounter(nil), hostutil.NewFakeHostUtil(nil),
		filepath.Join(n.dir, "pods"), &record.FakeRecorder{}, volumetesting.NewBlockVolumePathHandler(), nil, 0)
	go n.volumes.Run(t.Context(), n)
	return n
}

// What the volume manager asks its kubelet.

func (n *node) AddSource(string)                                {}
func (n *node) AllReady() bool                                  { return true }
func (n *node) ShouldPodContainersBeTerminating(types.UID) bool { return false }
func (n *node) ShouldPodRuntimeBeRemoved(types.UID) bool        { return false }

func (n *node) GetPodByUID(uid types.UID) (*corev1.Pod, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	pod, ok := n.pods[uid]
	return pod, ok
}

func (n *node) GetPods() (all []*corev1.Pod) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, pod := range n.pods {
		all = append(all, pod)
	}
	return all
}

// each does something for every pod at once.
func (n *node) each(pods int, do func(i int)) {
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("pod-%d", i)) }

// update replaces a pod by one with this key, as an update from the API server does.
func (n *node) update(i int, key string) {
	file := corev1.DownwardAPIVolumeFile{Path: "key", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['key']"}}
	source := corev1.DownwardAPIVolumeSource{DefaultMode: ptr.To[int32](0o644), Items: []corev1.DownwardAPIVolumeFile{file}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(uidOf(i)), UID: uidOf(i), Annotations: map[string]string{"key": key}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "latch", VolumeMounts: []corev1.VolumeMount{{Name: "latch", MountPath: "/latch"}}}},
			Volumes:    []corev1.Volume{{Name: "latch", VolumeSource: corev1.VolumeSource{DownwardAPI: &source}}},
		},
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod.UID] = pod
}

// sync does what SyncPod does about volumes.
func (n *node) sync(i int) {
	pod, _ := n.GetPodByUID(uidOf(i))
	if err := n.volumes.WaitForAttachAndMount(context.Background(), pod); err != nil {
		n.t.Error(err)
	}
}

// read is the key in the pod's volume.
func (n *node) read(i int) string {
	data, err := os.ReadFile(filepath.Join(n.dir, "pods", string(uidOf(i)), "volumes", "kubernetes.io~downward-api", "latch", "key"))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(data)
}

package manager

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// source lists one node of this name, and nothing happens to it.
func source(name string) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: name}}}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}
}

func TestNodesComeFromTheReducedList(t *testing.T) {
	informers := newInformerFrom(unstreamed{source("nodes")})
	for name, obj := range map[string]runtime.Object{"nodes": &corev1.Node{}, "usual": &corev1.Pod{}} {
		informer := informers(unstreamed{source("usual")}, obj, 0, nil)
		go informer.RunWithContext(t.Context())
		deadline := time.Now().Add(time.Minute)
		for len(informer.GetStore().ListKeys()) == 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if keys := informer.GetStore().ListKeys(); len(keys) != 1 || keys[0] != name {
			t.Errorf("%T comes from %v, want %s", obj, keys, name)
		}
	}
}

// unstreamed is a source that does not stream its list.
type unstreamed struct{ toolscache.ListerWatcher }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

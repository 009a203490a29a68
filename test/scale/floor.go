package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/readygate/readygate/internal/testenv"
)

// floor is a minimal controller: one watch, one PATCH per node, no status, no events. It keeps no objects and overwrites
// taints that other clients set at the same time. Its flags are its only rule.
type floor struct {
	api      metadata.Interface
	taints   []string
	workers  chan struct{}
	nodes    map[string]*floorNode
	finished chan floorWrite
}

// floorNode is the state that the floor keeps per node.
type floorNode struct {
	version uint64 // the last received resourceVersion
	unmet   bool
	others  []corev1.Taint
	held    bool // carries the taints
	busy    bool // a write is in flight
}

type floorWrite struct {
	node    string
	version uint64
}

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

func newFloorCommand() *cobra.Command {
	var kubeconfig string
	var taints []string
	var workers int
	cmd := &cobra.Command{
		Use:   "floor",
		Short: "Run a minimal controller, with which the manager is compared",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := &floor{taints: taints, workers: make(chan struct{}, workers), nodes: map[string]*floorNode{}, finished: make(chan floorWrite)}
			return f.run(cmd.Context(), kubeconfig)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "Path of the kubeconfig.")
	cmd.Flags().StringSliceVar(&taints, "taints", nil, "Taint keys that the floor sets on a node whose condition is not True.")
	cmd.Flags().IntVar(&workers, "workers", 16, "Maximum number of concurrent PATCHes.")
	return cmd
}

func (f *floor) run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.UserAgent = -1, "floor"
	if f.api, err = metadata.NewForConfig(config); err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := f.list(ctx, typed)
	if err != nil {
		return err
	}
	events, err := watchNodes(ctx, typed, version)
	if err != nil {
		return err
	}
	return f.loop(ctx, events)
}

// list handles all nodes and returns the version to watch from.
func (f *floor) list(ctx context.Context, api kubernetes.Interface) (version string, err error) {
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		f.see(ctx, watch.Added, &list.Items[i])
	}
	return list.ResourceVersion, nil
}

// loop is the only goroutine that accesses f.nodes. Other goroutines only send PATCHes.
func (f *floor) loop(ctx context.Context, events <-chan watch.Event) error {
	for {
		select {
		case event, open := <-events:
			if !open {
				return errors.New("the watch has ended")
			}
			if node, ok := event.Object.(*corev1.Node); ok {
				f.see(ctx, event.Type, node)
			}
		case done := <-f.finished:
			node := f.nodes[done.node]
			if node == nil {
				continue
			}
			node.busy = false
			if node.version >= done.version { // the watch has already delivered this write
				f.settle(ctx, done.node, node)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *floor) see(ctx context.Context, kind watch.EventType, obj *corev1.Node) {
	if kind == watch.Deleted {
		delete(f.nodes, obj.Name)
		return
	}
	node := f.nodes[obj.Name]
	if node == nil {
		node = &floorNode{}
		f.nodes[obj.Name] = node
	}
	node.version, _ = strconv.ParseUint(obj.ResourceVersion, 10, 64)
	node.unmet = required(obj) != corev1.ConditionTrue
	node.held = testenv.HasTaint(obj, f.taints[0])
	node.others = slices.DeleteFunc(obj.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(f.taints, t.Key) })
	f.settle(ctx, obj.Name, node)
}

// settle starts a PATCH of a node whose taints are wrong.
func (f *floor) settle(ctx context.Context, name string, node *floorNode) {
	want := node.unmet
	if node.busy || want == node.held {
		return
	}
	node.busy = true
	taints := slices.Clone(node.others)
	if want {
		for _, key := range f.taints {
			taints = append(taints, corev1.Taint{Key: key, Value: "pending", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	go func() {
		done := floorWrite{node: name, version: f.write(ctx, name, taints)}
		if done.version == 0 { // the PATCH failed: retry with the state received by then
			_ = sleep(ctx, time.Second) // an error is fine: the loop ends with the context
		}
		f.finished <- done
	}()
}

// write replaces the taints and returns the new resourceVersion, or 0 if the PATCH failed.
func (f *floor) write(ctx context.Context, name string, taints []corev1.Taint) uint64 {
	f.workers <- struct{}{}
	defer func() { <-f.workers }()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		return 0
	}
	obj, err := f.api.Resource(nodesResource).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0
	}
	version, _ := strconv.ParseUint(obj.ResourceVersion, 10, 64)
	return version
}

package live

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Follow keeps a fleet up to date until the context is over. It returns when everything has
// been seen once. Pods are counted if they are asked for and may be seen.
func (s *Source) Follow(ctx context.Context, pods bool) (*Fleet, error) {
	f := NewFleet()
	f.filling = true
	if err := s.mayFollow(ctx, &v1alpha1.NodeReadinessRuleList{}, "list nodereadinessrules"); err != nil {
		return nil, err
	}
	if err := s.mayFollow(ctx, &corev1.NodeList{}, "list nodes"); err != nil {
		return nil, err
	}
	informers, err := cache.New(s.config, cache.Options{Scheme: s.scheme, DefaultTransform: lean})
	if err != nil {
		return nil, err
	}
	kinds := map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.NodeReadinessRule{}: handler(f.putRule, f.dropRule),
		&corev1.Node{}:                handler(f.putNode, f.dropNode),
	}
	if pods {
		if err := s.mayFollow(ctx, &corev1.PodList{}, "list pods"); err != nil {
			f.unseen = append(f.unseen, err.Error())
		} else {
			f.pods, f.podsOn = map[string]string{}, map[string]int{}
			kinds[&corev1.Pod{}] = handler(f.putPod, f.dropPod)
		}
	}
	var synced []toolscache.InformerSynced
	for kind, handle := range kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, inWords(err)
		}
		registration, err := informer.AddEventHandler(handle)
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	go func() { _ = informers.Start(ctx) }() // ends with the context
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.Join(errors.New("the cluster did not answer"), ctx.Err())
	}
	f.filled()
	return f, nil
}

// mayFollow says in words why objects cannot be listed. An informer would try for ever.
func (s *Source) mayFollow(ctx context.Context, list client.ObjectList, what string) error {
	err := s.client.List(ctx, list, client.Limit(1))
	if apierrors.IsResourceExpired(err) {
		return nil
	}
	return cannot(what, err)
}

// lean drops what no line needs; a node's images and managed fields are most of it.
func lean(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase}
		o.Annotations, o.Labels, o.OwnerReferences = nil, nil, nil
	}
	return obj, nil
}

// handler calls put and drop with objects of one kind.
func handler[T client.Object](put, drop func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { put(obj.(T)) },
		UpdateFunc: func(_, obj any) { put(obj.(T)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			drop(obj.(T))
		},
	}
}

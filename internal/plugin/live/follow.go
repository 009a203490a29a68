package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// Follow returns a fleet that is kept up to date until the context ends. It returns after the first list of all kinds.
// Pods are included if pods is set and they may be read. If the connection is lost later, the fleet reports this and
// reconnects.
func (s *Source) Follow(ctx context.Context, pods bool) (*Fleet, error) {
	f := NewFleet(time.Now)
	f.filling = true
	if err := s.mayFollow(ctx, &v1alpha1.NodeReadinessRuleList{}, "nodereadinessrules"); err != nil {
		return nil, err
	}
	if err := s.mayFollow(ctx, &corev1.NodeList{}, "nodes"); err != nil {
		return nil, err
	}
	informers, err := s.informers(f)
	if err != nil {
		return nil, err
	}
	kinds := []client.Object{&v1alpha1.NodeReadinessRule{}, &corev1.Node{}}
	if pods {
		if err := s.mayFollow(ctx, &corev1.PodList{}, "pods"); err != nil {
			f.unseen = append(f.unseen, err.Error())
		} else {
			f.waiting = map[string]struct{}{}
			kinds = append(kinds, &corev1.Pod{})
			kinds = append(kinds, s.gateKinds(ctx, f)...)
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.Put(obj.(client.Object)) },
		UpdateFunc: func(_, obj any) { f.Put(obj.(client.Object)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			f.Drop(obj.(client.Object))
		},
	}
	var synced []toolscache.InformerSynced
	for _, kind := range kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, inWords(fmt.Sprintf("%T", kind), err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	go func() { _ = informers.Start(ctx) }() // ends with the context
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.Join(errors.New("the cluster did not respond"), ctx.Err())
	}
	f.filled()
	return f, nil
}

// gateKinds returns the kinds that determine the gates of pods, as far as they may be followed. A cluster without
// PodReadinessRules has none; this is not reported as missing.
func (s *Source) gateKinds(ctx context.Context, f *Fleet) []client.Object {
	if err := s.mayFollow(ctx, &podv1alpha1.PodReadinessRuleList{}, "podreadinessrules"); err != nil {
		if f.gates = nil; !notInstalled(err) {
			f.unseen = append(f.unseen, err.Error())
		}
		return nil
	}
	if err := s.mayFollow(ctx, &corev1.NamespaceList{}, "namespaces"); err != nil {
		f.unseen = append(f.unseen, err.Error())
		return []client.Object{&podv1alpha1.PodReadinessRule{}}
	}
	return []client.Object{&podv1alpha1.PodReadinessRule{}, &corev1.Namespace{}}
}

// informers returns a cache whose requests report lost connections to the fleet. It sends no discovery requests, because
// it uses the mapper of the source.
func (s *Source) informers(f *Fleet) (cache.Cache, error) {
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchedTransport{fleet: f, next: next} })
	return cache.New(config, cache.Options{Scheme: s.scheme, Mapper: s.client.RESTMapper(), DefaultTransform: lean})
}

// mayFollow returns an error for users if objects cannot be listed and watched. An informer would retry forever.
func (s *Source) mayFollow(ctx context.Context, list client.ObjectList, what string) error {
	if err := s.client.List(ctx, list, client.Limit(1)); err != nil && !apierrors.IsResourceExpired(err) {
		return cannot("list "+what, err)
	}
	watcher, err := client.NewWithWatch(s.config, client.Options{Scheme: s.scheme, Mapper: s.client.RESTMapper()})
	if err != nil {
		return err
	}
	second := int64(1) // a proxy may buffer the response until it ends
	watch, err := watcher.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &second}})
	switch {
	case err == nil:
		watch.Stop()
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("permission to watch %s is missing: ask for a role that can get, list and watch them (%w)", what, err)
	case apierrors.IsResourceExpired(err):
		return nil
	}
	return cannot("watch "+what, err)
}

// lean drops the fields that no row needs. A node's images and managed fields are the largest.
func lean(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
	case *corev1.Pod:
		if closed(o) {
			return slim(o), nil
		}
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase}
		o.Annotations, o.Labels, o.OwnerReferences = nil, nil, nil
	}
	return obj, nil
}

package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/mutatingpolicy"
)

// served is the discovery of an API server that serves policies in one version; empty: in none.
type served struct {
	discovery.ServerResourcesInterfaceWithContext
	version string
	err     error
}

func (s *served) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	if s.err != nil {
		return nil, s.err
	}
	if groupVersion != admissionv1.GroupName+"/"+s.version {
		return nil, apierrors.NewNotFound(admissionv1.Resource("mutatingadmissionpolicies"), groupVersion)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "MutatingAdmissionPolicy"}}}, nil
}

// running are the informers of a cache, as kind and version.
type running struct {
	names []string
	// fails is the informer that cannot be started.
	fails string
}

type informer struct{ cache.Informer }

func (informer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

func nameOf(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind()
	return kind.Kind + " " + kind.Version
}

func (r *running) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if nameOf(obj) == r.fails {
		return nil, errors.New("no such API")
	}
	if !slices.Contains(r.names, nameOf(obj)) {
		r.names = append(r.names, nameOf(obj))
	}
	return informer{}, nil
}

func (r *running) RemoveInformer(_ context.Context, obj client.Object) error {
	r.names = slices.DeleteFunc(r.names, func(name string) bool { return name == nameOf(obj) })
	return nil
}

// After each step the policy and the binding are watched in the served version and in no other one, also after a step that
// failed halfway, as behind a load balancer in front of API servers of two versions.
func TestTheServedVersionIsWatched(t *testing.T) {
	both := func(version string) []string {
		return []string{"MutatingAdmissionPolicy " + version, "MutatingAdmissionPolicyBinding " + version}
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	d, informers, watched := &served{}, &running{}, notWatched
	r := &Reconciler{client: mutatingpolicy.Client{Discovery: mutatingpolicy.Discovery{ServerResourcesInterfaceWithContext: d}}}
	for _, step := range []struct {
		what, serves, fails string
		err                 error
		want                []string
		wantErr             bool
	}{
		{what: "no API"},
		{what: "v1beta1", serves: "v1beta1", want: both("v1beta1")},
		{what: "discovery fails", err: errors.New("timeout"), want: both("v1beta1"), wantErr: true},
		{what: "v1, but the request for the binding fails", serves: "v1", fails: both("v1")[1], want: both("v1")[:1], wantErr: true},
		{what: "v1beta1 again", serves: "v1beta1", want: both("v1beta1")},
		{what: "v1", serves: "v1", want: both("v1")},
		{what: "no API again"},
		{what: "v1 again", serves: "v1", want: both("v1")},
	} {
		d.version, d.err, informers.fails = step.serves, step.err, step.fails
		var err error
		watched, err = r.watchServed(t.Context(), informers, watched, q)
		if !slices.Equal(informers.names, step.want) || (err != nil) != step.wantErr {
			t.Errorf("%s: informers %q, want %q; error %v", step.what, informers.names, step.want, err)
		}
	}
}

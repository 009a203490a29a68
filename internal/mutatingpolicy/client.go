// Package mutatingpolicy reads and writes MutatingAdmissionPolicies and their bindings in the version that the API server
// serves: v1 from Kubernetes 1.36 on, v1beta1 in 1.34 and 1.35 if it is enabled. Its callers use the types of v1.
package mutatingpolicy

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	kind        = "MutatingAdmissionPolicy"
	bindingKind = kind + "Binding"
)

// Versions of the API that Readygate uses, the preferred one first. They have the same fields.
var Versions = []string{"v1", "v1beta1"}

// Discovery finds the version that an API server serves.
type Discovery struct {
	discovery.ServerResourcesInterfaceWithContext
}

// NewDiscovery returns the discovery of a cluster. Without an HTTP client it makes one.
func NewDiscovery(config *rest.Config, connection *http.Client) (Discovery, error) {
	if connection == nil {
		var err error
		if connection, err = rest.HTTPClientFor(config); err != nil {
			return Discovery{}, err
		}
	}
	c, err := discovery.NewDiscoveryClientForConfigAndClient(config, connection)
	return Discovery{c}, err
}

// Version returns the version that the API server serves now: it can be another one after an upgrade. The error is one of
// meta.IsNoMatchError if the API server serves none.
func (d Discovery) Version(ctx context.Context) (string, error) {
	for _, version := range Versions {
		list, err := d.ServerResourcesForGroupVersionWithContext(ctx, admissionv1.GroupName+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("finding the served version of %s: %w", kind, err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			return version, nil
		}
	}
	return "", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: admissionv1.GroupName, Kind: kind}, SearchedVersions: Versions}
}

// Empty returns an empty policy and an empty binding of this version; none if the version is empty.
func Empty(version string) []client.Object {
	if version == "" {
		return nil
	}
	var objects []client.Object
	for _, k := range []string{kind, bindingKind} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: admissionv1.GroupName, Version: version, Kind: k})
		objects = append(objects, obj)
	}
	return objects
}

// In returns a policy or binding as an object of this version, and any other object unchanged.
func In(version string, obj runtime.Object) (runtime.Object, error) {
	k := kindOf(obj)
	if k == "" {
		return obj, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(schema.GroupVersionKind{Group: admissionv1.GroupName, Version: version, Kind: k})
	return converted, nil
}

// Is reports whether the object is a policy or a binding.
func Is(obj runtime.Object) bool { return kindOf(obj) != "" }

func kindOf(obj runtime.Object) string {
	switch obj.(type) {
	case *admissionv1.MutatingAdmissionPolicy:
		return kind
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return bindingKind
	}
	return ""
}

// Client is a client that finds the served version of policies and bindings.
type Client struct {
	client.WithWatch
	Discovery
}

// NewClient returns a client without a cache. Requests for policies and bindings use the version that the API server serves
// at that time. Only get, create, update and delete are converted.
func NewClient(config *rest.Config, options client.Options) (Client, error) {
	d, err := NewDiscovery(config, options.HTTPClient)
	if err != nil {
		return Client{}, err
	}
	c, err := client.NewWithWatch(config, options)
	if err != nil {
		return Client{}, err
	}
	return Client{Discovery: d, WithWatch: interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return d.convert(ctx, obj, func(obj client.Object) error { return c.Get(ctx, key, obj, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return d.convert(ctx, obj, func(obj client.Object) error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return d.convert(ctx, obj, func(obj client.Object) error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return d.convert(ctx, obj, func(obj client.Object) error { return c.Delete(ctx, obj, opts...) })
		},
	})}, nil
}

// convert makes a request with the object in the version that the API server serves, and sets the object to the response.
// Not found can also mean that another API server, which serves another version, answered: then it tries once more.
func (d Discovery) convert(ctx context.Context, obj client.Object, request func(client.Object) error) error {
	if !Is(obj) {
		return request(obj)
	}
	version, err := d.Version(ctx)
	if err != nil {
		return err
	}
	err = convertTo(version, obj, request)
	if apierrors.IsNotFound(err) {
		if now, nowErr := d.Version(ctx); nowErr == nil && now != version {
			return convertTo(now, obj, request)
		}
	}
	return err
}

func convertTo(version string, obj client.Object, request func(client.Object) error) error {
	if version == admissionv1.SchemeGroupVersion.Version {
		return request(obj)
	}
	converted, err := In(version, obj)
	if err != nil {
		return err
	}
	served := converted.(*unstructured.Unstructured)
	if err := request(served); err != nil {
		return err
	}
	served.SetAPIVersion(admissionv1.SchemeGroupVersion.String())
	reflect.ValueOf(obj).Elem().SetZero() // the converter keeps fields that the response does not have
	return runtime.DefaultUnstructuredConverter.FromUnstructured(served.Object, obj)
}
